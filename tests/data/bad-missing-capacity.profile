name = small card
flops = 5e12
mem_bandwidth = 300e9
launch_ns = 5000
h2d = 11e9
d2h = 12e9
