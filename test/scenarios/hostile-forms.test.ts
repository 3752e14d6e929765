/** Forms for every operation: with many parts, long names, binary bytes, and wrong framing. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import { FORM, type Target, testEveryOperation } from '../support/hostile-operations.ts'

const MULTIPART = 'multipart/form-data; boundary=b'
/** Below the limit of a form (`FIELDS_MAX`). */
const FIELDS = 9_000
/** Too many for a body that the HTTP thread splits itself. */
const PARTS = 1_500

const part = (name: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${'a'.repeat(40)}\r\n`
/** A form with a raw value for each name that the operation reads. */
const pairs = ({ names }: Target, value: string) =>
  names.map((name) => `${encodeURIComponent(name)}=${value}`)
const form = (all: readonly string[]) => ({ type: FORM, body: Buffer.from(all.join('&'), 'latin1') })

testEveryOperation({
  'many fields': (target) => {
    const times = Math.floor(FIELDS / (target.names.length + 1))
    const others = Array.from({ length: times }, (_, index) => `name${index}=a`)
    return form([...others, ...Array<string[]>(times).fill(pairs(target, 'a')).flat()])
  },
  'many parts': ({ names }) => {
    const parts = Array.from({ length: PARTS }, (_, index) =>
      part(names[index % (names.length + 1)] ?? 'other'),
    )
    return { type: MULTIPART, body: Buffer.from(`${parts.join('')}--b--\r\n`) }
  },
  'long names and values': (target) =>
    form([`${'n'.repeat(200_000)}=1`, ...pairs(target, 'x'.repeat(20_000))]),
  'NUL in names and values': (target) => form(['%00=%00', ...pairs(target, 'a%00b')]),
  'NUL in the path': () => ({ ...form(['a=b']), pathEnd: '%00' }),
  'not UTF-8': (target) => form(['%ff%fe=\xff', ...pairs(target, '\xc3\xff%c3%28')]),
  'shorter than its length': (target) => ({ ...form(pairs(target, 'a')), length: 100_000, after: 'close' }),
  'longer than its length': (target) => ({ ...form([...pairs(target, 'a'), '&'.repeat(200)]), length: 7 }),
  'an unknown type': () => ({ type: 'application/xml', body: Buffer.from('<a></a>') }),
  'a type without its boundary': () => ({
    type: 'multipart/form-data; boundary="',
    body: Buffer.from('--b\r\n'),
  }),
})
