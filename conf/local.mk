# conf: what ships under $(sysconfdir)/wattshare
gpuconfdir = $(sysconfdir)/wattshare/gpu.d
dist_gpuconf_DATA = conf/gpu.d/rtx3070.conf conf/gpu.d/t400.conf conf/gpu.d/tesla-c1060.conf conf/gpu.d/h200.conf \
    conf/gpu.d/gtx970.conf conf/gpu.d/xavier.conf conf/gpu.d/gtx1080ti.conf
