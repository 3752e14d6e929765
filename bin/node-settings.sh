# What a start of the service gives to Node: flags, and a variable for OpenSSL. Both have to be there before Node starts.
# This is the only place for them: bin/sendwright reads it for `serve`, and through that `npm start` and the bench.
# To be sourced by sh.

# --expose-gc                        memory is given back at rest (decision 47)
# --v8-pool-size=1                   one helper thread of V8 (26)
# --max-semi-space-size=16           MB in each half of the young generation (26)
# --no-allocation-site-pretenuring   what a request makes dies young (40)
#
# One more flag is set and reset while the service runs: --heap-growing-percent (src/cli/heap-growth.ts, decision 25).
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
