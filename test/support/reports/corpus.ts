/** Every synthetic report with its expected result. */
import { FAULTS, replyOf, type Subject } from './mail.ts'
import { WHOLE_TEXTS } from './more-texts.ts'
import { COMPLAINTS, FORWARDED, HARMLESS, HOSTILE, NO_COMPLAINTS, NO_REPORTS } from './other-mail.ts'
import { STATUS_FORMATS } from './status-reports.ts'
import { TEXT_FORMATS } from './text-reports.ts'

export interface Sample {
  name: string
  raw(subject: Subject): string
  /** `bounce`: a failed event, and with `hard` an entry; `complaint`: event and entry; `nothing`: neither. */
  expect:
    | { kind: 'bounce'; hard: boolean; status: string | null }
    | { kind: 'complaint' }
    | { kind: 'nothing' }
  /** The report names the recipient of the delivery. */
  namesRecipient: boolean
}

/** Replies of servers in texts; without codes only the words count. */
const SAID: readonly { name: string; status: string | null; hard: boolean; says(s: Subject): string }[] = [
  ...FAULTS.filter(({ name }) => ['unknown', 'full', 'spam'].includes(name)).map((fault) => ({
    ...fault,
    says: (subject: Subject) => replyOf(fault, subject),
  })),
  { name: 'words', status: null, hard: true, says: () => 'No such user here' },
]

const structured = Object.entries(STATUS_FORMATS).flatMap(([format, write]) =>
  FAULTS.map(
    (fault): Sample => ({
      name: `${format}, ${fault.name}`,
      raw: (subject) => write(subject, fault),
      expect: { kind: 'bounce', hard: fault.hard, status: fault.status },
      namesRecipient: true,
    }),
  ),
)

const texts = Object.entries(TEXT_FORMATS).flatMap(([format, write]) =>
  SAID.map(
    ({ name, status, hard, says }): Sample => ({
      name: `${format}, ${name}`,
      raw: (subject) => write(subject, says(subject)),
      expect: { kind: 'bounce', hard, status },
      namesRecipient: true,
    }),
  ),
)

/** They do not name the address. */
const UNNAMED = new Set(['old sendmail, not sent for days'])

const wholeTexts = WHOLE_TEXTS.map(
  ({ name, raw, says, status }): Sample => ({
    name,
    raw,
    expect: says === 'late' ? { kind: 'nothing' } : { kind: 'bounce', hard: says === 'gone', status },
    namesRecipient: !UNNAMED.has(name),
  }),
)

const all = (
  formats: Readonly<Record<string, (subject: Subject) => string>>,
  expect: Sample['expect'],
): Sample[] => Object.entries(formats).map(([name, raw]) => ({ name, raw, expect, namesRecipient: false }))

const nothing = { kind: 'nothing' } as const

export const SAMPLES: readonly Sample[] = [
  ...structured,
  ...texts,
  ...wholeTexts,
  ...all(FORWARDED, { kind: 'bounce', hard: true, status: '5.1.1' }),
  ...all(COMPLAINTS, { kind: 'complaint' }),
  ...all(NO_COMPLAINTS, nothing),
  ...all(HARMLESS, nothing),
  ...all(NO_REPORTS, nothing),
]

export { HOSTILE }
