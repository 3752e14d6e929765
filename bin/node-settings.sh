# What a start of the service gives to Node: flags, and variables for OpenSSL and for memory. They have to be there before
# Node starts.
# This is the only place for them: bin/sendwright reads it for `serve`, and through that `npm start` and the bench.
# To be sourced by sh.

# --expose-gc                        memory is given back at rest (decision 47)
# --v8-pool-size=1                   one helper thread of V8 (26)
# --max-semi-space-size=16           MB in each half of the main thread's young generation (26; engine-flags.ts)
# --no-allocation-site-pretenuring   what a request makes dies young (40)
#
# One more flag is set while the service runs: --heap-growing-percent (src/cli/local/heap-growth.ts, decisions 25 and 192).
node_flags='--expose-gc --v8-pool-size=1 --max-semi-space-size=16 --no-allocation-site-pretenuring'

# OpenSSL signs RSA-2048 by AVX2 only where the processor lacks ADX or BMI2. On AMD's Zen 3 (family 25 without AVX-512
# IFMA, which Zen 4 has and OpenSSL prefers) AVX2 is the faster one: 610 us instead of 690 us a signature. The mask hides
# ADX, bit 19 of EBX of CPUID leaf 7 (decisions 39 and 57). A value that is set already stays. Only Linux has the file.
tune_openssl() {
  if [ -n "${OPENSSL_ia32cap+set}" ] || [ ! -r /proc/cpuinfo ]; then return 0; fi
  vendor='' family='' features=''
  while IFS=: read -r name value; do
    case $name in
      vendor_id*) vendor=${value# } ;;
      'cpu family'*) family=${value# } ;;
      flags*) features=" $value " && break ;; # all processors are of one kind
    esac
  done < /proc/cpuinfo
  case "$vendor $family" in 'AuthenticAMD 25') ;; *) return 0 ;; esac
  case $features in *' avx512ifma '*) return 0 ;; esac
  case $features in *' adx '*) ;; *) return 0 ;; esac
  case $features in *' avx2 '*) export OPENSSL_ia32cap=':~0x80000' ;; esac
}

# glibc's malloc has up to eight arenas for each processor, and gives each thread one of its own as long as there are
# fewer. What one thread frees then serves no other: with two arenas the peak under load is 30 to 50 MB lower, and a message
# costs no more (decision 192). Other libraries ignore it. A value that is set already stays.
tune_malloc() {
  export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX-2}"
}

# SENDWRIGHT_MEMORY=small: a smaller young generation, and an old one as large as V8 itself chooses with 512 MB, also on a
# machine that has more (decision 147). V8 takes the last of two equal flags. The default is small where there is less than
# 1 GiB, and the service gets it by the variable. The service refuses values other than small and normal.
# $1: the file of settings, or nothing.
tune_memory() {
  memory=$(memory_setting "$1")
  if [ -z "$memory" ] && is_memory_scarce; then export SENDWRIGHT_MEMORY=small memory=small; fi
  if [ "$memory" = small ]; then node_flags="$node_flags --max-semi-space-size=8 --max-old-space-size=256"; fi
}

# As Node reads both: a variable of the environment stays, of several lines the last one counts.
memory_setting() {
  if [ -n "${SENDWRIGHT_MEMORY+set}" ]; then
    printf %s "$SENDWRIGHT_MEMORY" | tr -d '[:space:]'
  elif [ -f "$1" ] && [ -r "$1" ]; then # a pipe could not be read again
    sed -n 's/^[[:space:]]*\(export[[:space:]]\{1,\}\)\{0,1\}SENDWRIGHT_MEMORY[[:space:]]*=//p' "$1" | tail -n 1 |
      sed "s/#.*//; s/[\"'\`[:space:]]//g"
  fi
}

# Whether the machine or a control group of this process has less than 1 GiB. Only Linux has the files.
is_memory_scarce() {
  [ -r /proc/meminfo ] || return 1
  while read -r name number _; do
    if [ "$name" = MemTotal: ]; then is_scarce "$number" 1048576 && return 0; break; fi
  done < /proc/meminfo
  [ -r /proc/self/cgroup ] || return 1
  # number:controllers:path; version 2 has no controllers.
  while IFS=: read -r _ controllers path; do
    case $controllers in
      '') folder=/sys/fs/cgroup file=memory.max ;;
      memory) folder=/sys/fs/cgroup/memory file=memory.limit_in_bytes ;;
      *) continue ;;
    esac
    # Groups above limit it too. In a container the path may be that of the host, and its own group is at the top.
    while :; do
      path=${path%/}
      if [ -r "$folder$path/$file" ] && read -r number < "$folder$path/$file"; then
        is_scarce "$number" 1073741824 && return 0
      fi
      [ -n "$path" ] || break
      path=${path%/*}
    done
  done < /proc/self/cgroup
  return 1
}

# $1 below $2; a group without a limit has "max", or a number beyond all memory.
is_scarce() {
  case $1 in '' | *[!0-9]*) return 1 ;; esac
  [ "$1" -lt "$2" ]
}
