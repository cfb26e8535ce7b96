/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
/* Tables: a click on a title sorts by it; numbers the largest first, then the other way round. */
for (const table of document.querySelectorAll("table.rows")) {
	const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
	heads.forEach((head, at) => {
		const button = document.createElement("button"), text = head.classList.contains("t");
		button.append(...head.childNodes);
		head.append(button);
		button.onclick = () => {
			const was = head.getAttribute("aria-sort");
			const up = was ? was === "descending" : text;
			const key = row => row.cells[at].dataset.v ?? "";
			const order = (a, b) => {
				const x = key(a), y = key(b);
				if (x === "" || y === "")
					return (x === "") - (y === "");
				const way = text ? x.localeCompare(y) : x - y;
				return up ? way : -way;
			};
			heads.forEach(other => other.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", up ? "ascending" : "descending");
			body.append(...[...body.rows].sort(order));
		};
	});
}
/* Drawings over time: what was when, where one points. */
const three = (x, units) => {
	let k = 0;
	for (; x >= 999.5 && k + 1 < units.length; k++)
		x /= units[k][1];
	return (x < 9.995 ? x.toFixed(2) : x < 99.95 ? x.toFixed(1) : x.toFixed(0)) + "\u202f" + units[k][0];
};
const times = [["ns", 1000], ["\u00b5s", 1000], ["ms", 1000], ["s", 1]];
for (const panel of document.querySelectorAll(".panel[data-span]")) {
	const of = name => (panel.dataset[name] ?? "").split(",").map(Number);
	const first = +panel.dataset.first, width = +panel.dataset.width, span = +panel.dataset.span;
	const rows = { level: of("level"), in: of("in"), out: of("out"), faults: of("faults") };
	const tip = document.createElement("div"), lines = [];
	tip.className = "tip";
	tip.hidden = true;
	panel.append(tip);
	for (const plot of panel.querySelectorAll(".plot")) {
		const line = document.createElement("div");
		line.className = "cross";
		line.hidden = true;
		plot.append(line);
		lines.push(line);
		plot.onpointerleave = () => [tip, ...lines].forEach(e => { e.hidden = true; });
		plot.onpointermove = event => {
			const box = plot.getBoundingClientRect(), outer = panel.getBoundingClientRect();
			const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
			const bin = Math.floor((share * span - first) / width);
			const at = name => rows[name][bin] ?? 0, sizes = [["MiB", 1024], ["GiB", 1]];
			[tip, ...lines].forEach(e => { e.hidden = false; });
			lines.forEach(e => { e.style.left = 100 * share + "%"; });
			tip.textContent = "at " + three(share * span, times) +
				(panel.dataset.level ? "\nin use " + three(at("level"), sizes) : "") +
				"\nin " + at("in") + " GB/s, out " + at("out") + " GB/s" +
				"\nfaults " + at("faults") + " per ms";
			tip.style.top = box.top - outer.top + "px";
			const left = share * box.width + 12;
			tip.style.left = (left + tip.offsetWidth > box.width ? left - tip.offsetWidth - 24 : left) + "px";
		};
	}
}
