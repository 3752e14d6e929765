/**
 * What OpenSSL is told about the processor. It signs RSA-2048 by AVX2 only where the processor lacks ADX or BMI2; the
 * rule comes from Intel's first processors with ADX. On AMD's Zen 3 AVX2 is the quicker of the two: 610 us instead of
 * 690 us of CPU a signature, a twentieth of all that a delivered message costs there. Other keys (RSA of other
 * lengths, P-256, X25519) cost the same either way, and a processor with AVX-512 IFMA uses neither
 * (docs/decisions: OpenSSL on Zen 3).
 */
import { readFileSync } from 'node:fs'

const VARIABLE = 'OPENSSL_ia32cap'
/** Takes ADX, bit 19 of EBX of CPUID leaf 7, from the features that OpenSSL may use (its page on OPENSSL_ia32cap). */
const WITHOUT_ADX = ':~0x80000'
/** Zen 3 and 4; the latter has AVX-512 IFMA. */
const FAMILY_ZEN_3 = 25

/** What OPENSSL_ia32cap should be on the machine that `cpuinfo` (Linux' /proc/cpuinfo) describes; null for nothing. */
export function opensslFeatures(cpuinfo: string): string | null {
  const field = (name: string) => new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(cpuinfo)?.[1] ?? ''
  if (field('vendor_id') !== 'AuthenticAMD' || Number(field('cpu family')) !== FAMILY_ZEN_3) return null
  const flags = field('flags').split(' ')
  return flags.includes('adx') && flags.includes('avx2') && !flags.includes('avx512ifma') ? WITHOUT_ADX : null
}

/**
 * OpenSSL reads the variable before any of our code runs, so the process replaces itself, once, by the same program
 * with the variable set; its id stays. Returns where there is nothing to set, or it is set already, or that cannot be.
 */
export function restartTuned(cpuinfoFile = '/proc/cpuinfo'): void {
  // A parent that talks to us over a channel would lose it.
  const mayNot = process.env[VARIABLE] !== undefined || process.send !== undefined
  if (mayNot || process.execve === undefined) return
  const features = opensslFeatures(textOf(cpuinfoFile))
  if (features === null) return
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  try {
    process.execve(process.execPath, args, { ...process.env, [VARIABLE]: features })
  } catch {
    // Not permitted: the service is as good without it, only slower.
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // Not Linux.
    return ''
  }
}
