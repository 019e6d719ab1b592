bursar profile 1
program xz 5f3e0c77
command xz -9 -k linux.tar
mmap 27 0 0..192M huge=2100000 touched=100% sure=90% eager=40000
heap - - 0..64M touched=12%
bss libfoo.so:77ab - 16M..24M huge=90000
program sh -
mmap * * 0..1M touched=3%
