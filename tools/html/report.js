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
