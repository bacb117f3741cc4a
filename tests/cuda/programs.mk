# Programs of one source that nvcc builds with the static and the shared runtime, and that test themselves; a name a line, sorted.
# tests/process/lib.sh reads this, too.
CUDA_PROGRAM_NAMES = \
	arraycopy \
	asynccopy \
	atomics \
	convolve \
	coopgroups \
	cubs \
	deviceheap \
	factor \
	finance \
	graphcapture \
	graphcond \
	graphjacobi \
	graphmemory \
	graphnodes \
	graphparallel \
	graphrandom \
	graphwalk \
	halves \
	heat \
	hostfunc \
	hostthreads \
	imagefilter \
	inlineptx \
	intmath \
	managedvar \
	mathd \
	mathf \
	objects \
	particles \
	perthread \
	printing \
	progress \
	records \
	scan \
	signals \
	sorting \
	streamorder \
	surface \
	texlinear \
	texture2d \
	texture3d \
	thrusting \
	warpedges \
	wmmagemm
