/**
 * What the audit log keeps of a call: a function of the operation and the request alone (decision 51).
 *
 * Every operation that changes something is recorded unless it is exempt, so that a new one cannot be forgotten.
 * Values are left out unless they are harmless by their form (numbers, switches, dates, words of a fixed list) or named
 * in `given`, so that a new parameter with a secret cannot be forgotten either.
 */
import { parseDate } from '../../../base/time/dates.ts'
import { booleanOf, isPlainObject } from '../../../base/values.ts'
import { Reply } from '../answer/reply.ts'
import { isWriting, type Operation, type ParamDoc, pathNames, type RecordedCall } from '../operation.ts'
import type { Params } from '../request/params.ts'
import type { Caller } from './auth.ts'

export interface AuditEntry {
  caller: Caller
  remoteAddress: string
  requestId: string
  action: string
  subject: string
  given: Readonly<Record<string, unknown>>
}

export interface AuditOutcome {
  status: number
  made: Readonly<Record<string, string | number>>
}

/** Handed in by the accounts area. */
export interface AuditLog {
  /**
   * Commits the row of a change before it is made. The function that it resolves to notes the outcome and never rejects:
   * the change is made by then.
   * @throws as the store does; then nothing may be changed
   */
  open(entry: AuditEntry): Promise<(outcome: AuditOutcome) => Promise<void>>
}

/** Values of one parameter. */
const VALUES_MAX = 20
const VALUE_LENGTH_MAX = 256
const NAME_LENGTH_MAX = 64
/** Longer URLs are not parsed; the operations refuse them as well. */
const URL_LENGTH_MAX = 8 * 1024
const SUBJECT_LENGTH_MAX = 512
/** In place of a value that is not kept. */
export const NOT_RECORDED = '(not recorded)'

/** For the machine description: whether calls are in the audit log, and if not, why; null for a plain GET. */
export function auditNote(spec: Operation): { recorded: boolean; reason?: string } | null {
  if (spec.audit !== undefined && 'exempt' in spec.audit)
    return { recorded: false, reason: spec.audit.exempt }
  if (isWriting(spec)) return { recorded: true }
  return spec.method === 'GET' ? null : { recorded: false, reason: 'reads only' }
}

/** `createDomainKey`: `domain-key.create`; the verb comes first in every id. */
export function actionOf(operationId: string): string {
  const [verb = '', ...thing] = operationId
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .split(' ')
  return thing.length === 0 ? verb : `${thing.join('-')}.${verb}`
}

/** The row that is written before the handler runs. */
export function entryOf(
  spec: Operation,
  call: RecordedCall,
  request: {
    caller: Caller
    params: Params
    path: Readonly<Record<string, string>>
    remoteAddress: string
    requestId: string
  },
): AuditEntry {
  const { caller, params, path, remoteAddress, requestId } = request
  const parts = pathNames(spec.path).map((name) => path[name] ?? '')
  const named = (call.subject ?? []).map((name) => params.text(name) ?? '')
  return {
    caller,
    remoteAddress,
    requestId,
    action: call.action ?? actionOf(spec.id),
    subject: subjectOf([...parts, ...named]),
    given: givenValues(spec, call, params),
  }
}

/** PostgreSQL holds no NUL in text. */
const subjectOf = (parts: readonly string[]) =>
  parts.map(withoutUrlSecrets).join('/').slice(0, SUBJECT_LENGTH_MAX).replaceAll('\0', '\uFFFD')

/** What is added to the row with the answer. */
export function outcomeOf(call: RecordedCall, result: object): AuditOutcome {
  const isReply = result instanceof Reply
  const body = isReply ? (result.content.kind === 'json' ? result.content.body : null) : result
  const made: Record<string, string | number> = {}
  for (const name of call.made ?? []) {
    const value = memberAt(body, name)
    if (typeof value === 'number') made[name] = value
    else if (typeof value === 'string') made[name] = value.slice(0, VALUE_LENGTH_MAX)
  }
  return { status: isReply ? result.status : 200, made }
}

function memberAt(body: unknown, name: string): unknown {
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) => (isPlainObject(value) && Object.hasOwn(value, part) ? value[part] : undefined),
      body,
    )
}

/** Parameters of a call by name, as they may be kept. Only documented names: an unknown name could be a secret itself. */
export function givenValues(spec: Operation, call: RecordedCall, params: Params): Record<string, unknown> {
  const documented = new Map(spec.params.map((param) => [param.name, param]))
  const kept = new Set(call.given)
  const given: Record<string, unknown> = {}
  for (const name of params.names()) {
    const param = documented.get(name)
    if (kept.has(name)) given[name] = keptValue(params, name)
    else if (param !== undefined) given[name] = plainValue(param, params)
  }
  for (const { name, type } of spec.params)
    if (type === 'file' && params.files(name).length > 0) given[name] = NOT_RECORDED
  return given
}

function keptValue(params: Params, name: string): unknown {
  const value = params.value(name)
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (isPlainObject(value)) return keptMembers(value)
  const texts = params.texts(name).slice(0, VALUES_MAX).map(keptText)
  return texts.length > 1 ? texts : (texts[0] ?? '')
}

/** The plain members of a JSON object; nested ones could be of any size. */
function keptMembers(object: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(object).slice(0, VALUES_MAX)) {
    const isPlain = typeof value === 'number' || typeof value === 'boolean'
    kept[name.slice(0, NAME_LENGTH_MAX)] =
      typeof value === 'string' ? keptText(value) : isPlain ? value : NOT_RECORDED
  }
  return kept
}

/** A text as the audit log keeps it. */
export const keptText = (text: string) => withoutUrlSecrets(text).slice(0, VALUE_LENGTH_MAX)

/** The value, if its form leaves no room for a secret. */
function plainValue(param: ParamDoc, params: Params): unknown {
  const texts = params.texts(param.name).slice(0, VALUES_MAX)
  if (!texts.every((text) => hasPlainForm(param, text))) return NOT_RECORDED
  return texts.length > 1 ? texts : (texts[0] ?? '')
}

function hasPlainForm({ type, values }: ParamDoc, text: string): boolean {
  switch (type) {
    case 'boolean':
      return booleanOf(text) !== undefined
    case 'integer':
    case 'number':
      return /^-?\d{1,15}(\.\d{1,6})?$/.test(text)
    case 'date':
      return parseDate(text) !== undefined
    default:
      return values?.includes(text) === true
  }
}

const URL_LIKE = /^[a-z][a-z0-9+.-]*:\/\//i

/** A URL without user info, query and fragment, which may hold passwords and tokens; any other text as it is. */
export function withoutUrlSecrets(text: string): string {
  if (!URL_LIKE.test(text)) return text
  if (text.length > URL_LENGTH_MAX || !URL.canParse(text)) return NOT_RECORDED
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}
