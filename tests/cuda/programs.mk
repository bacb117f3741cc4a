# Programs of one source that nvcc builds with the static and the shared runtime, and that test themselves; a name a line, sorted.
# tests/process/lib.sh reads this, too.
CUDA_PROGRAM_NAMES = \
	arraycopy \
	asynccopy \
	atomics \
	coopgroups \
	cubs \
	deviceheap \
	graphcapture \
	graphcond \
	graphjacobi \
	graphmemory \
	graphnodes \
	graphparallel \
	graphrandom \
	halves \
	hostfunc \
	imagefilter \
	intmath \
	ipcshare \
	managedvar \
	mathd \
	mathf \
	memorypools \
	perthread \
	printing \
	progress \
	streamorder \
	surface \
	texlinear \
	texture2d \
	texture3d \
	thrusting \
	unified \
	vmm \
	warpedges \
	wmmagemm
