import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createMarkAuthority, LOGO, type MarkOptions } from '../../../test/support/mark-certificates.ts'
import { checkMark, type MarkExpectation } from './certificate.ts'
import { derAt, derValues } from './der.ts'
import { LOGO_BYTES_MAX, logoFaults, unpackedLogo } from './logo.ts'
import { isBimiRecord, readBimi } from './record.ts'

test('records: logo, certificate, preference of the avatar', () => {
  const url = 'https://a.example/l.svg'
  const cases: [text: string, expected: Partial<ReturnType<typeof readBimi>>][] = [
    [`v=BIMI1; l=${url}`, { logo: url, certificate: '', avatar: 'brand', wrongTags: [] }],
    [
      `v=BIMI1;L=${url};A=https://a.example/m.pem;AVP=Personal;x=1`,
      { certificate: 'https://a.example/m.pem', avatar: 'personal', wrongTags: [] },
    ],
    ['v=BIMI1; l=; a=;', { logo: '', certificate: '', wrongTags: [] }],
    ['v=BIMI1; l=http://a.example/l.svg; a=x; avp=none', { wrongTags: ['l', 'a', 'avp'], avatar: 'brand' }],
  ]
  for (const [text, expected] of cases) {
    assert.ok(isBimiRecord(text))
    const read = readBimi(text)
    assert.deepEqual({ ...read, ...expected }, read, text)
  }
  for (const text of ['', 'v=BIMI2; l=x', 'l=x; v=BIMI1', 'v=BIMI10', `v=BIMI1; l=${'x'.repeat(5_000)}`])
    assert.equal(isBimiRecord(text), false, text.slice(0, 20))
})

test('logos: the profile Portable/Secure of SVG Tiny', () => {
  const root = 'xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 9 9"'
  const svg = (inner: string, attributes = root) => `<svg ${attributes}><title>T</title>${inner}</svg>`
  const cases: [svg: string, faults: RegExp][] = [
    [LOGO.toString(), /^$/],
    [svg('<g><path d="M0 0" fill="url(#g)"/><use href="#a"/></g>'), /^$/],
    ['', /no SVG/],
    ['hello', /no SVG/],
    ['<html><svg/></html>', /^it is no SVG/],
    [`<svg ${root}><g><title>T</title></g></svg>`, /no title/],
    [`<svg ${root}><title> </title></svg>`, /no title/],
    [svg('', root.replace('tiny-ps', 'tiny')), /baseProfile/],
    [svg('', root.replace('1.2', '1.1')), /version/],
    [svg('', root.replace('xmlns', 'xmlnt')), /xmlns/],
    [svg('', `${root} x="0"`), /x= or y=/],
    [svg('', root.replace('9 9', '9 8')), /not square/],
    [svg('<script>1</script>'), /element script/],
    [svg('<s:SCRIPT xmlns:s="x"/>'), /element script/],
    [svg('<g><animateTransform/></g>'), /element animatetransform/],
    [svg('<image xlink:href="#a"/>'), /element image/],
    [svg('<foreignObject/>'), /element foreignobject/],
    [svg('<use xlink:href="https://x.example/a#b"/>'), /outside/],
    [svg('<use href="data:x"/>'), /outside/],
    [svg('<rect fill="url( &#39;https://x.example/a&#39; )"/>'), /outside/],
    [svg('<rect onclick="x()"/>'), /event/],
    [`<!DOCTYPE svg [<!ENTITY a "b">]>${svg('&a;')}`, /document type/],
    [svg('<g>'.repeat(200)), /nested too deeply/],
  ]
  for (const [text, faults] of cases)
    assert.match(logoFaults(Buffer.from(text)).join('; '), faults, text.slice(0, 200))
  fc.assert(
    fc.property(fc.string(), (text) => void logoFaults(Buffer.from(`<svg>${text}`))),
    { seed: 20261128 },
  )
})

test('logos are at most 32 KB, packed or not', async () => {
  assert.deepEqual(await unpackedLogo(LOGO), LOGO)
  assert.deepEqual(await unpackedLogo(gzipSync(LOGO)), LOGO)
  assert.equal((await unpackedLogo(Buffer.alloc(LOGO_BYTES_MAX)))?.length, LOGO_BYTES_MAX)
  assert.equal(await unpackedLogo(Buffer.alloc(LOGO_BYTES_MAX + 1)), null)
  assert.equal(await unpackedLogo(gzipSync(Buffer.alloc(LOGO_BYTES_MAX + 1))), null)
  assert.equal(await unpackedLogo(gzipSync(LOGO).subarray(0, 30)), null)
})

test('certificates: chain, use, name, dates, logo', async () => {
  const authority = createMarkAuthority()
  const other = createMarkAuthority()
  const packedLogo = gzipSync(LOGO)
  const good: MarkOptions = { names: ['a.example'], packedLogo, logo: LOGO }
  const bundle = (options: Partial<MarkOptions> = {}) =>
    authority.issue({ ...good, ...options }) + authority.middle
  const expected: MarkExpectation = {
    names: ['a.example', 'default._bimi.a.example'],
    logo: LOGO,
    roots: [other.root, authority.root],
    now: Date.now(),
  }
  const past = { from: new Date(Date.now() - 9e9), to: new Date(Date.now() - 1e9) }
  const another = Buffer.from(LOGO.toString().replace('Shop', 'Else'))
  const cases: [what: string, pem: string, change: Partial<MarkExpectation>, faults: RegExp][] = [
    ['good', bundle(), {}, /^$/],
    ['with its root', bundle() + authority.root.toString(), {}, /^$/],
    ['without a logo to compare', bundle(), { logo: null }, /^$/],
    ['not packed', bundle({ packedLogo: LOGO }), {}, /^$/],
    ['for the selector', bundle({ names: ['default._bimi.a.example'] }), {}, /^$/],
    ['nothing', 'hello', {}, /no PEM/],
    ['broken', bundle().replace(/[A-Z]{4}/g, 'AAAA'), {}, /no PEM|sign each other|authority|BIMI/],
    ['too many', bundle() + authority.middle.repeat(5), {}, /no PEM/],
    ['without its issuer', authority.issue(good), {}, /no known authority/],
    ['unknown root', bundle(), { roots: [] }, /^no known authority for marks has issued it$/],
    // The names fit, the signature does not.
    ['issuer of another key', authority.issue(good) + other.middle, {}, /do not sign each other/],
    ['a root of another key', bundle(), { roots: [other.root] }, /no known authority/],
    ['in the wrong order', authority.middle + authority.issue(good), {}, /do not sign each other/],
    [
      'a server certificate',
      createAuthority().issue(['a.example']).cert,
      {},
      /authority.*no certificate for BIMI.*no logo/,
    ],
    ['for servers', bundle({ usage: 'server' }), {}, /^it is no certificate for BIMI$/],
    ['another name', bundle({ names: ['b.example', 'xa.example'] }), {}, /^it does not name the domain$/],
    ['expired', bundle(past), {}, /^it, or one that it depends on, is not valid today$/],
    ['not yet valid', bundle(), { now: Date.now() - 9e8 }, /not valid today/],
    ['another logo', bundle(), { logo: another }, /^its logo is another file than that of l=$/],
    ['a wrong hash', bundle({ logo: another }), {}, /^the hash of its logo is wrong$/],
    ['a bomb', bundle({ packedLogo: gzipSync(Buffer.alloc(9_000_000)) }), {}, /^it has no logo$/],
  ]
  for (const [what, pem, change, faults] of cases)
    assert.match((await checkMark(pem, { ...expected, ...change })).faults.join('; '), faults, what)
  const { validTo } = await checkMark(bundle(), expected)
  assert.match(validTo ?? '', /^\d{4}-\d\d-\d\dT/)
})

test('a certificate whose last day cannot be read is not valid', async () => {
  const authority = createMarkAuthority()
  const issued = authority.issue({ names: ['a.example'], packedLogo: gzipSync(LOGO), logo: LOGO })
  const der = Buffer.from(new X509Certificate(issued).raw)
  const [, end] = [...der.toString('latin1').matchAll(/\d{12,14}Z/g)]
  der.write('99xx99', (end as RegExpExecArray).index, 'latin1')
  const undated = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`
  const { faults, validTo } = await checkMark(undated + authority.middle, {
    ...{ names: ['a.example'], logo: LOGO, roots: [authority.root], now: Date.now() },
  })
  assert.equal(validTo, null)
  assert.match(faults.join('; '), /not valid today/)
})

test('DER is read within its bounds, whatever the bytes', () => {
  assert.deepEqual(
    derValues(Buffer.from('0201050403616263', 'hex'))?.map(({ tag }) => tag),
    [2, 4],
  )
  assert.equal(derAt(Buffer.from('300302010f', 'hex'), [0x30, 0x02])?.toString('hex'), '0f')
  for (const hex of ['02', '0205', '3080', '3085000000000101', '1f0101', '30840fffffff00'])
    assert.equal(derValues(Buffer.from(hex, 'hex')), null, hex)
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      (bytes) => void derAt(Buffer.from(bytes), [0x30, 0x30, 0xa3]),
    ),
    { seed: 20261128 },
  )
})
