/**
 * The rules that decide what a failed attempt means (bounce-classification.md section 4): who refused, whose fault it is,
 * and whether it is critical. Ours are in rules.json; an operator's file may put rules before them and switch rules off.
 *
 * A reply may say several things: "550 5.1.1 has sent to too many recipients". So patterns are tried in the order of what
 * they prove, not rule by rule; see `EVIDENCE`.
 */
import { readFileSync } from 'node:fs'
import { createPrefilter, type Prefilter } from '../../base/needed-text.ts'
import { compilePattern, type Pattern, readPattern } from '../../protocols/smtp/reply-pattern.ts'

export const CATEGORIES = [
  'BOUNCE',
  'ESPBLOCK',
  'BLACKLISTED',
  'CONTENT',
  'AUTHENTICATION',
  'RATELIMIT',
  'GREYLISTED',
  'MAILBOXFULL',
  'TECHNICAL',
  'GENERIC',
] as const
export type Category = (typeof CATEGORIES)[number]

/** Whose fault a failure is; bounce-classification.md section 2. */
export const FAULTS = [
  /** No such mailbox, or closed for good. */
  'recipient-gone',
  /** The mailbox is full, or closed for a time. */
  'recipient-closed',
  /** The sender's address, its authentication or its DNS. */
  'sender',
  /** This host, or the address that it sends from. */
  'host',
  'content',
  /** What the receiver permits, and how fast. */
  'policy',
  /** The receiver's machines, network or DNS. */
  'receiver',
  'unknown',
] as const
export type Fault = (typeof FAULTS)[number]

/** The fault of a rule that names none. */
const FAULT_OF: Readonly<Record<Category, Fault>> = {
  BOUNCE: 'recipient-gone',
  ESPBLOCK: 'policy',
  BLACKLISTED: 'host',
  CONTENT: 'content',
  AUTHENTICATION: 'sender',
  RATELIMIT: 'policy',
  GREYLISTED: 'policy',
  MAILBOXFULL: 'recipient-closed',
  TECHNICAL: 'receiver',
  GENERIC: 'unknown',
}

export interface Rule {
  id: string
  entity: string
  category: Category
  fault: Fault
  /** Its words are used for other causes too, such as "access denied". */
  vague: boolean
  critical: boolean
  /** Whether the reply has to be a 4xx or a 5xx. */
  replyClass: 'any' | '4xx' | '5xx'
  /** Alternatives. */
  patterns: readonly Pattern[]
  explanation: string
  /** Replies as sent by servers, the best one first; at least one. */
  samples: readonly string[]
}

/**
 * What a pattern proves, in the order in which patterns are tried. Providers misuse codes, and their replies to a session
 * or about a sender often name the recipient: hence words before codes, and words about the mailbox not first.
 */
const EVIDENCE = [
  /** Words about session, rate, sender, host, content or policy. */
  'cause',
  /** Words about the mailbox. */
  'mailbox',
  /** A code alone, such as 5.2.2. */
  'code',
  'vague',
  /** A code alone that says that the mailbox is gone, such as 5.1.1. */
  'gone-code',
] as const
type Evidence = (typeof EVIDENCE)[number]

export interface Trial {
  rule: Rule
  pattern: Pattern
  evidence: Evidence
}

export interface RuleSet {
  /** Version of our rules, then of the operator's file if there is one: "2026-11-21" or "2026-11-21+acme-3". */
  version: string
  rules: readonly Rule[]
  byId: ReadonlyMap<string, Rule>
  /** Patterns in the order in which they are tried: by evidence, then as in `rules`. */
  trials: readonly Trial[]
  /** Which trials may match a text in lower case. */
  prefilter: Prefilter
}

/** Stands for replies that no rule matches; never tried. */
export const UNCLASSIFIED: Rule = {
  id: 'unclassified',
  entity: 'unclassified',
  category: 'GENERIC',
  fault: 'unknown',
  vague: false,
  critical: false,
  replyClass: 'any',
  patterns: [],
  explanation: 'No rule knows this reply.',
  samples: [''],
}

/** bounce-classification.md section 2. An entity that only an operator's rules name is shown by its id. */
export const ENTITY_NAMES: Readonly<Record<string, string>> = {
  apple: 'Apple',
  abusix: 'Abusix',
  att: 'AT&T',
  barracuda: 'Barracuda',
  cisco: 'Cisco',
  cloudmark: 'Cloudmark',
  comcast: 'Comcast',
  free: 'Free',
  generic: 'Other',
  gmail: 'Gmail',
  gmx: 'GMX / WEB.DE',
  hotmail: 'Microsoft (Hotmail)',
  invaluement: 'Invaluement',
  mailru: 'Mail.ru',
  mimecast: 'Mimecast',
  netease: 'NetEase',
  office365: 'Microsoft 365',
  orange: 'Orange',
  proofpoint: 'Proofpoint',
  qq: 'Tencent QQ',
  spamcop: 'SpamCop',
  spamhaus: 'Spamhaus',
  symantec: 'Symantec',
  tonline: 'T-Online',
  trendmicro: 'Trend Micro',
  uceprotect: 'UCEPROTECT',
  unclassified: 'Unclassified',
  urilist: 'Link lists',
  yahoo: 'Yahoo / AOL',
  yandex: 'Yandex',
}

export const entityName = (id: string): string => ENTITY_NAMES[id] ?? id

/** A file of rules has faults; the message names all of them. */
export class RuleFileError extends Error {
  override name = 'RuleFileError'
}

/** Rules of one file; each costs about a microsecond per failed attempt. */
const RULES_MAX = 1_000
const PATTERNS_MAX = 50
const SAMPLES_MAX = 20
const TEXT_LENGTH_MAX = 1_000
const FAULTS_NAMED_MAX = 20
const ID = /^[a-z0-9][a-z0-9-]{0,63}$/
const VERSION = /^[A-Za-z0-9._-]{1,64}$/

interface RuleFile {
  version: string
  rules: Rule[]
  off: string[]
}

/** Read once: a process of the tests starts hundreds of services. */
let shippedFile: RuleFile | null = null
let shippedSet: RuleSet | null = null

/**
 * Our rules, with those of an operator's file before them.
 * @param operatorFile JSON `{version, rules?: [...], off?: [rule ids]}`, its rules as in rules.json; null: none
 * @throws RuleFileError naming every fault of the operator's file, also when it cannot be read
 */
export function loadRules(operatorFile: string | null): RuleSet {
  shippedFile ??= readRuleFile(readFileSync(new URL('rules.json', import.meta.url), 'utf8'), readPattern)
  const ours = shippedFile
  if (operatorFile === null) {
    shippedSet ??= ruleSet(ours.version, ours.rules)
    return shippedSet
  }
  let text: string
  try {
    text = readFileSync(operatorFile, 'utf8')
  } catch (error) {
    throw new RuleFileError(`cannot be read: ${(error as Error).message}`, { cause: error })
  }
  const theirs = readRuleFile(text, compilePattern)
  const ids = new Set(ours.rules.map(({ id }) => id))
  const faults = [
    ...theirs.off.filter((id) => !ids.has(id)).map((id) => `off: there is no rule "${id}"`),
    ...theirs.rules
      .filter(({ id }) => ids.has(id) && !theirs.off.includes(id))
      .map(({ id }) => `rule "${id}": the id is taken; switch that rule off or choose another id`),
  ]
  if (faults.length > 0) throw new RuleFileError(faults.slice(0, FAULTS_NAMED_MAX).join('; '))
  const kept = ours.rules.filter(({ id }) => !theirs.off.includes(id))
  return ruleSet(`${ours.version}+${theirs.version}`, [...theirs.rules, ...kept])
}

function ruleSet(version: string, rules: readonly Rule[]): RuleSet {
  const all = rules.flatMap((rule) =>
    rule.patterns.map((pattern) => ({ rule, pattern, evidence: evidenceOf(rule, pattern) })),
  )
  const trials = EVIDENCE.flatMap((evidence) => all.filter((trial) => trial.evidence === evidence))
  let made: Prefilter | undefined
  // For the first refusal: most services have none for hours, and it takes a megabyte.
  const prefilter: Prefilter = (...given) => {
    made ??= createPrefilter(
      trials.map(({ pattern }) => pattern.needed),
      rules.flatMap(({ samples }) => samples.map((text) => text.toLowerCase())),
    )
    return made(...given)
  }
  return { version, rules, byId: new Map(rules.map((rule) => [rule.id, rule])), trials, prefilter }
}

function evidenceOf({ fault, vague }: Rule, { source }: Pattern): Evidence {
  const isGone = fault === 'recipient-gone'
  if (!hasWords(source)) return isGone ? 'gone-code' : 'code'
  if (vague) return 'vague'
  return isGone || fault === 'recipient-closed' ? 'mailbox' : 'cause'
}

/** Whether a pattern needs letters, apart from those of its own syntax, such as `\\b` and `\\d`. */
const hasWords = (source: string) => /\p{L}/u.test(source.replaceAll(/\\./g, ''))

/** @throws RuleFileError */
function readRuleFile(text: string, makePattern: (source: string) => Pattern): RuleFile {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw new RuleFileError(`is not JSON: ${(error as Error).message}`, { cause: error })
  }
  if (!isObject(document)) throw new RuleFileError('is not a JSON object with "version" and "rules"')
  const { version, rules = [], off = [] } = document
  const faults: string[] = []
  if (typeof version !== 'string' || !VERSION.test(version)) {
    faults.push('version: 1 to 64 letters, digits, dots, hyphens')
  }
  if (!isTexts(off, RULES_MAX)) faults.push('off: not a list of rule ids')
  if (!Array.isArray(rules) || rules.length > RULES_MAX) {
    faults.push(`rules: not a list of at most ${RULES_MAX}`)
  }
  const read: Rule[] = []
  const ids = new Set<string>([UNCLASSIFIED.id])
  for (const [index, entry] of (Array.isArray(rules) ? rules.slice(0, RULES_MAX) : []).entries()) {
    const fault = (what: string) => faults.push(`rule ${ruleLabel(entry, index)}: ${what}`)
    const rule = readRule(entry, fault, makePattern)
    if (!rule) continue
    if (ids.has(rule.id)) faults.push(`rule "${rule.id}": the id is taken`)
    ids.add(rule.id)
    read.push(rule)
  }
  if (faults.length > 0) throw new RuleFileError(faults.slice(0, FAULTS_NAMED_MAX).join('; '))
  return { version: version as string, rules: read, off: off as string[] }
}

const ruleLabel = (entry: unknown, index: number) =>
  isObject(entry) && typeof entry['rule-id'] === 'string'
    ? `"${entry['rule-id'].slice(0, 64)}"`
    : `number ${index + 1}`

function readRule(
  entry: unknown,
  fault: (what: string) => void,
  makePattern: (source: string) => Pattern,
): Rule | null {
  if (!isObject(entry)) {
    fault('is not an object')
    return null
  }
  const id = entry['rule-id']
  const entity = entry['entity-id']
  const { category, vague = false, critical, patterns, explanation, samples } = entry
  const whose = entry['fault'] ?? FAULT_OF[category as Category]
  const replyClass = entry['reply-class'] ?? 'any'
  const checks: [boolean, string][] = [
    [isId(id), 'rule-id: lower-case letters, digits and hyphens, at most 64'],
    [isId(entity), 'entity-id: lower-case letters, digits and hyphens, at most 64'],
    [CATEGORIES.some((known) => known === category), `category: one of ${CATEGORIES.join(', ')}`],
    [FAULTS.some((known) => known === whose), `fault: one of ${FAULTS.join(', ')}`],
    // Of the category follow the reason of the event and what the caller is told, of the fault the suppression.
    [
      (whose === 'recipient-gone') === (category === 'BOUNCE'),
      'fault: recipient-gone is that of BOUNCE alone',
    ],
    [typeof vague === 'boolean', 'vague: true or false'],
    [typeof critical === 'boolean', 'critical: true or false'],
    [['any', '4xx', '5xx'].some((known) => known === replyClass), 'reply-class: any, 4xx or 5xx'],
    [isTexts(patterns, PATTERNS_MAX) && patterns.length > 0, `patterns: 1 to ${PATTERNS_MAX} texts`],
    [isText(explanation), 'explanation: a text'],
    [isTexts(samples, SAMPLES_MAX) && samples.length > 0, `samples: 1 to ${SAMPLES_MAX} texts`],
  ]
  const wrong = checks.filter(([holds]) => !holds)
  for (const [, what] of wrong) fault(what)
  if (wrong.length > 0) return null
  return {
    id: id as string,
    entity: entity as string,
    category: category as Category,
    fault: whose as Fault,
    vague: vague as boolean,
    critical: critical as boolean,
    replyClass: replyClass as Rule['replyClass'],
    patterns: (patterns as string[]).flatMap((source) => patternOf(source, fault, makePattern)),
    explanation: explanation as string,
    samples: samples as string[],
  }
}

function patternOf(source: string, fault: (what: string) => void, makePattern: (source: string) => Pattern) {
  try {
    return [makePattern(source)]
  } catch (error) {
    fault(`pattern "${source.slice(0, 60)}": ${(error as Error).message}`)
    return []
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= TEXT_LENGTH_MAX
const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)
const isTexts = (value: unknown, max: number): value is string[] =>
  Array.isArray(value) && value.length <= max && value.every(isText)
