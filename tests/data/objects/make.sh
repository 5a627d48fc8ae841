#!/bin/sh
# Makes the objects of this folder anew, with nvcc 13.0 and gcc. No byte depends on the time; in rdc.o and in LTO-IR
# internal names depend on the folder.
set -e
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
$nvcc -cubin -arch=sm_90 sample.cu -o sm_90.cubin
$nvcc -cubin -arch=sm_75 sample.cu -o sm_75.cubin
$nvcc -cubin -arch=sm_120a sample.cu -o sm_120a.cubin
$nvcc -cubin -arch=sm_90 -rdc=true sample.cu -o relocatable.cubin
$nvcc -ptx -arch=sm_90 sample.cu -o sample.ptx
for mode in none speed size; do
    $nvcc -fatbin -arch=sm_90 --compress-mode=$mode sample.cu -o $mode.fatbin
done
$nvcc -fatbin -gencode arch=compute_90,code=lto_90 -gencode arch=compute_80,code=sm_80 sample.cu -o lto.fatbin
$nvcc -dlto -ltoir -arch=sm_90 sample.cu -o sample.ltoir
keep=$(mktemp -d)
TMPDIR=$keep $nvcc -c -rdc=true -arch=sm_90 --keep --keep-dir "$keep" sample.cu -o rdc.o
rm -r "$keep"
${CC:-cc} -O2 -shared -fPIC -nostdlib -fno-asynchronous-unwind-tables -Wl,-z,noseparate-code -Wl,--build-id=none \
    -Wl,-soname,libhost.so.1 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/lib:/opt/lib' host.c -o host.so
