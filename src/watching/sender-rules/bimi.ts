/**
 * What a domain's BIMI record leads to: the logo and the mark certificate, fetched and checked (protocols/bimi).
 *
 * Only the sender rules ask, never the sending path. URLs are those of a DNS record, so anybody's: they are fetched by the
 * client for foreign URLs (no private networks, no redirects, 64 KB, 10 s), https only, few at a time. A result is kept for a
 * day, a failure to fetch for minutes; a changed record is fetched at once.
 */
import type { X509Certificate } from 'node:crypto'
import { createGate } from '../../base/flow/gate.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import { RESPONSE_MAX_BYTES } from '../../platform/posts/http-client.ts'
import { checkMark, type MarkCertificate } from '../../protocols/bimi/certificate.ts'
import { logoFaults, unpackedLogo } from '../../protocols/bimi/logo.ts'
import type { BimiRecord } from '../../protocols/bimi/record.ts'
import { createTtlCache } from '../../protocols/dns/cache.ts'

/** Faults are parts of a sentence. */
export interface BimiEvidence {
  /** Null: it could not be fetched, for `logoProblem`. */
  logoFaults: readonly string[] | null
  logoProblem: string
  /** Null: the record names none, or it could not be fetched, for `markProblem`. */
  mark: MarkCertificate | null
  markProblem: string
  /** A host gave no answer, which may be our own fault or pass. */
  isUnsure: boolean
}

export interface BimiParts {
  httpClient: Pick<HttpClient, 'send'>
  clock: Clock
  /** Default: those whom the large receivers know. */
  roots?: readonly X509Certificate[]
}

/** Domains that are remembered; an evidence has some hundred bytes. */
const REMEMBERED_MAX = 10_000
const REMEMBER_SECONDS = 86_400
const REMEMBER_FAILURE_SECONDS = 300
const OPEN_MAX = 4
const WAITING_MAX = 100

type Fetched = { bytes: Buffer } | { problem: string; isUnsure: boolean }

export function createBimiCheck({ httpClient, clock, roots }: BimiParts) {
  const known = createTtlCache<BimiEvidence>(REMEMBERED_MAX, clock)
  const pending = new Map<string, Promise<BimiEvidence | null>>()
  const gate = createGate(OPEN_MAX, WAITING_MAX)

  async function fetchFile(url: string): Promise<Fetched> {
    const outcome = await httpClient.send({ url, method: 'GET' })
    if (outcome.kind !== 'answered') return { problem: outcome.why, isUnsure: outcome.kind === 'failed' }
    if (outcome.status !== 200)
      return { problem: `status ${outcome.status}`, isUnsure: outcome.status >= 500 }
    if (outcome.body.length >= RESPONSE_MAX_BYTES) return { problem: 'it is over 64 KB', isUnsure: false }
    return { bytes: outcome.body }
  }

  async function collect({ logo, certificate }: BimiRecord, names: readonly string[]): Promise<BimiEvidence> {
    const [file, pem] = await Promise.all([
      fetchFile(logo),
      certificate === '' ? null : fetchFile(certificate),
    ])
    const unpacked = 'bytes' in file ? await unpackedLogo(file.bytes) : null
    const mark =
      pem && 'bytes' in pem
        ? await checkMark(pem.bytes.toString('latin1'), {
            names,
            logo: unpacked,
            roots: roots ?? (await knownRoots()),
            now: clock.now(),
          })
        : null
    return {
      logoFaults:
        'problem' in file
          ? null
          : unpacked
            ? logoFaults(unpacked)
            : ['it is over 32 KB, or cannot be unpacked'],
      logoProblem: 'problem' in file ? file.problem : '',
      mark,
      markProblem: pem && 'problem' in pem ? pem.problem : '',
      isUnsure: [file, pem].some((one) => one !== null && 'problem' in one && one.isUnsure),
    }
  }

  async function inTurn(
    key: string,
    record: BimiRecord,
    names: readonly string[],
  ): Promise<BimiEvidence | null> {
    if (!(await gate.enter())) return null
    try {
      const evidence = await collect(record, names)
      const isWhole = evidence.logoProblem === '' && evidence.markProblem === ''
      known.set(key, evidence, isWhole ? REMEMBER_SECONDS : REMEMBER_FAILURE_SECONDS)
      return evidence
    } finally {
      gate.leave()
    }
  }

  /** `names`: any of which the certificate may be for. Null: too many others wait. Never rejects for network failures. */
  return (record: BimiRecord, names: readonly string[]): Promise<BimiEvidence | null> => {
    const key = JSON.stringify([record.logo, record.certificate, names])
    const hit = known.get(key)
    if (hit) return Promise.resolve(hit.value)
    const running = pending.get(key) ?? inTurn(key, record, names).finally(() => pending.delete(key))
    pending.set(key, running)
    return running
  }
}

export type BimiCheck = ReturnType<typeof createBimiCheck>

/** Loaded by the first record with a certificate. */
async function knownRoots(): Promise<readonly X509Certificate[]> {
  const { RootStore } = await import('@postalsys/vmc')
  return RootStore.create().rootCerts
}
