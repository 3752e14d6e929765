/**
 * Checks a mark certificate (VMC or CMC): RFC 3709 for its logo, the BIMI group's guidelines for the rest.
 *
 * 1. The PEM has the certificate first, then its issuers. Each is signed by the next, which is an authority; the last is a known
 *    root or signed by one. All are valid now.
 * 2. It may be used for BIMI, and names the domain.
 * 3. Its logo is the one that the record names.
 *
 * Left out: revocation, and the timestamps of certificate transparency, which Gmail demands of new certificates.
 */
import { createHash, X509Certificate } from 'node:crypto'
import { derAt, derValues } from './der.ts'
import { unpackedLogo } from './logo.ts'

/** id-kp-BrandIndicatorforMessageIdentification */
const BIMI_USAGE = '1.3.6.1.5.5.7.3.31'
/** id-pe-logotype, 1.3.6.1.5.5.7.1.12, in DER. */
const LOGOTYPE = Buffer.from('2b0601050507010c', 'hex')
/** An attribute of the subject: which kind of mark; a CMC has one that is no registered trademark. */
const MARK_TYPE = /^1\.3\.6\.1\.4\.1\.53087\.1\.13=(.*)$/m
/** A certificate, two issuers and a root. */
const CERTIFICATES_MAX = 5

const SEQUENCE = 0x30
const [CONTEXT_0, CONTEXT_2, CONTEXT_3] = [0xa0, 0xa2, 0xa3]
const [OID, OCTETS, IA5] = [0x06, 0x04, 0x16]
/** Contents of the OIDs of digests, in hexadecimal. */
const DIGESTS: Readonly<Record<string, string>> = {
  '2b0e03021a': 'sha1',
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
}

export interface MarkCertificate {
  /** What is wrong, as parts of a sentence; empty: nothing. */
  faults: readonly string[]
  /** "Registered Mark" and the like; '' if it does not say. */
  markType: string
  /** ISO 8601; null: there is no certificate, or its date cannot be read. */
  validTo: string | null
}

export interface MarkExpectation {
  /** Any of these must be among its names: the domain, its organization, and `<selector>._bimi.` of either. */
  names: readonly string[]
  /** The file of the record, unpacked; null: it could not be had, so it is not compared. */
  logo: Buffer | null
  roots: readonly X509Certificate[]
  /** Unix milliseconds. */
  now: number
}

export async function checkMark(pem: string, expected: MarkExpectation): Promise<MarkCertificate> {
  const chain = certificatesIn(pem)
  const leaf = chain?.[0]
  if (!chain || !leaf)
    return { faults: ['it is no PEM file of one to five certificates'], markType: '', validTo: null }
  const faults = [
    ...chainFaults(chain, expected),
    ...(leaf.keyUsage?.includes(BIMI_USAGE) ? [] : ['it is no certificate for BIMI']),
    ...(isFor(leaf, expected.names) ? [] : ['it does not name the domain']),
    ...(await logoFaultsOf(leaf, expected.logo)),
  ]
  const markType = MARK_TYPE.exec(leaf.subject)?.[1] ?? ''
  const validTo = Date.parse(leaf.validTo)
  return { faults, markType, validTo: Number.isNaN(validTo) ? null : new Date(validTo).toISOString() }
}

function certificatesIn(pem: string): X509Certificate[] | null {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0 || blocks.length > CERTIFICATES_MAX) return null
  try {
    return blocks.map((block) => new X509Certificate(block))
  } catch {
    return null
  }
}

function chainFaults(chain: readonly X509Certificate[], { roots, now }: MarkExpectation): string[] {
  const isValid = ({ validFrom, validTo }: X509Certificate) =>
    Date.parse(validFrom) <= now && now <= Date.parse(validTo)
  // `checkIssued` compares names only.
  const isIssuedBy = (one: X509Certificate, issuer: X509Certificate) =>
    issuer.ca && one.checkIssued(issuer) && one.verify(issuer.publicKey)
  const isSigned = chain.every((one, at) => {
    const issuer = chain[at + 1]
    return issuer === undefined || isIssuedBy(one, issuer)
  })
  const last = chain.at(-1)
  const root = roots.find(
    (one) => one.fingerprint512 === last?.fingerprint512 || (last && isIssuedBy(last, one)),
  )
  return [
    !isSigned && 'its certificates do not sign each other in order',
    root === undefined && 'no known authority for marks has issued it',
    ![...chain, ...(root ? [root] : [])].every(isValid) &&
      'it, or one that it depends on, is not valid today',
  ].filter((fault) => fault !== false)
}

function isFor({ subjectAltName = '' }: X509Certificate, names: readonly string[]): boolean {
  const own = subjectAltName.split(/,\s*/).map((entry) => entry.replace(/^DNS:/, '').toLowerCase())
  return names.some((name) => own.includes(name.toLowerCase()))
}

async function logoFaultsOf(leaf: X509Certificate, logo: Buffer | null): Promise<string[]> {
  const details = logotypeDetails(leaf.raw)
  const own = details && (await embeddedLogo(details))
  if (!details || !own) return ['it has no logo']
  if (!isHashOf(details, own)) return ['the hash of its logo is wrong']
  return logo !== null && !own.equals(logo) ? ['its logo is another file than that of l='] : []
}

/** LogotypeDetails of the subject's first image (RFC 3709 §4.1): media type, hashes, URIs. */
function logotypeDetails(certificate: Buffer): Buffer | null {
  const extensions = derAt(certificate, [SEQUENCE, SEQUENCE, CONTEXT_3, SEQUENCE])
  const logotype =
    extensions && derValues(extensions)?.find(({ content }) => derAt(content, [OID])?.equals(LOGOTYPE))
  const extension = logotype && derAt(logotype.content, [OCTETS])
  // LogotypeExtn, subjectLogo, direct, images, the first, its details.
  return extension ? derAt(extension, [SEQUENCE, CONTEXT_2, CONTEXT_0, SEQUENCE, SEQUENCE, SEQUENCE]) : null
}

/** The content of a `data:` URI, unpacked; null: there is none, or it is too large. */
async function embeddedLogo(details: Buffer): Promise<Buffer | null> {
  const uris = derValues(details)?.filter(({ tag }) => tag === SEQUENCE)[1]
  const uri = uris && derAt(uris.content, [IA5])?.toString('latin1')
  const data = /^data:image\/svg\+xml(?:;[\w=-]+)*;base64,/i.exec(uri ?? '')
  return uri && data ? unpackedLogo(Buffer.from(uri.slice(data[0].length), 'base64')) : null
}

/** One known hash has to fit; the unpacked file is hashed. */
function isHashOf(details: Buffer, logo: Buffer): boolean {
  const hashes = derAt(details, [SEQUENCE])
  return (hashes ? (derValues(hashes) ?? []) : []).some(({ content }) => {
    const digest = DIGESTS[derAt(content, [SEQUENCE, OID])?.toString('hex') ?? '']
    const value = derAt(content, [OCTETS])
    return digest !== undefined && value?.equals(createHash(digest).update(logo).digest()) === true
  })
}
