/**
 * Certificates that SNS signs with: fetched over verified https from a host that message.ts has allowed, a few of them kept
 * for a day. The file holds the certificate alone, so its chain cannot be followed to an authority here: the trust in it is
 * that of the connection. Its name, its key and its validity are checked besides.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import { Turns } from '../../base/flow/gate.ts'
import { Forbidden, Unavailable } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'

/** One for each region that is used, and its successor. */
const KEPT_MAX = 16
const KEPT_MS = DAY_MS
/** One is fetched at a time. Further notifications wait for their turn, or are refused with 503, and come again. */
const WAITING_MAX = 20
const RETRY_SECONDS = 20
const KEY_BITS_MIN = 2_048
/** `sns.amazonaws.com`, `sns-signing.eu-south-1.amazonaws.com`, `sns-cn-north-1.amazonaws.com.cn`. */
const SIGNER = /^sns(?:-[a-z0-9-]{1,40})?\.(?:[a-z0-9-]{1,40}\.)?amazonaws\.com(?:\.cn)?$/

interface SigningCertificate {
  key: KeyObject
  /** Unix milliseconds. */
  from: number
  to: number
}

export type SigningCertificates = ReturnType<typeof createSigningCertificates>

export function createSigningCertificates(parts: { httpClient: Pick<HttpClient, 'send'>; clock: Clock }) {
  const { httpClient, clock } = parts
  const turns = new Turns(WAITING_MAX)
  // Not a cache of loads: those that fail would drop what is known.
  const kept = new Map<string, SigningCertificate & { until: number }>()

  const known = (url: string) => {
    const found = kept.get(url)
    return found && found.until > clock.monotonic() ? found : null
  }

  async function load(url: string): Promise<SigningCertificate> {
    // It was fetched while this waited for its turn.
    const found = known(url)
    if (found) return found
    const certificate = readCertificate(await fetched(url))
    kept.delete(url)
    kept.set(url, { ...certificate, until: clock.monotonic() + KEPT_MS })
    const [oldest] = kept.keys()
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
    return certificate
  }

  async function fetched(url: string): Promise<Buffer> {
    const outcome = await httpClient.send({ url, method: 'GET' })
    if (outcome.kind !== 'answered' || outcome.status !== 200) throw new Unavailable(RETRY_SECONDS)
    return outcome.body
  }

  return {
    /**
     * The key of the certificate at a URL.
     * @throws Forbidden for a certificate that is none of SNS, or not valid now; Unavailable when it cannot be fetched now
     */
    async keyAt(url: string): Promise<KeyObject> {
      const { key, from, to } = known(url) ?? (await turns.run('certificates', () => load(url)))
      const now = clock.now()
      if (now < from || now > to) throw new Forbidden('The certificate of the signature is not valid now')
      return key
    },
  }
}

/** @throws Forbidden for anything but a certificate of SNS with an RSA key */
export function readCertificate(pem: Buffer): SigningCertificate {
  const certificate = parsed(pem)
  const key = certificate?.publicKey
  const bits = key?.asymmetricKeyDetails?.modulusLength ?? 0
  if (!certificate || key?.asymmetricKeyType !== 'rsa' || bits < KEY_BITS_MIN || certificate.ca)
    throw new Forbidden('The certificate of the signature is none')
  if (!namesOf(certificate).some((name) => SIGNER.test(name)))
    throw new Forbidden('The certificate of the signature is not of SNS')
  return { key, from: Date.parse(certificate.validFrom), to: Date.parse(certificate.validTo) }
}

function parsed(pem: Buffer): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}

/** Common name and DNS names, in lower case. */
function namesOf({ subject, subjectAltName }: X509Certificate): string[] {
  const text = `${subject ?? ''}\n${(subjectAltName ?? '').replaceAll(', ', '\n')}`.toLowerCase()
  return text.split('\n').flatMap((line) => /^(?:cn=|dns:)(.{1,255})$/.exec(line)?.[1] ?? [])
}
