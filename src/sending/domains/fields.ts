/**
 * The fields of a domain, each declared once: its column and how that holds the value, the value of a new domain, the
 * name and meaning on the wire, who may set it and how it is read, and when it is shown (domains.md).
 *
 * `Domain` and its rows (domain.ts), the parameters of D2 and D4 (settings.ts), the view and its description (shapes.ts,
 * view.ts) and what a move takes along follow. A new switch is a line here, `toggle`, and a migration.
 */
import { BadRequest } from '../../base/process/errors.ts'
import { flag, integer, type Of, object, oneOf, optional, type Shape, text } from '../../base/shape.ts'
import { weeklyWindow } from '../../base/time/weekly-window.ts'
import { invalidChoice } from '../../base/values.ts'
import {
  choiceParam,
  flagParam,
  type Input,
  type InputOf,
  integerParam,
  parsedParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { DomainRow, Flag } from '../../platform/store/schema.ts'
import { atomOf, hostNameOf } from './names/domain-names.ts'

export interface Disablement {
  code: string
  note: string
  reason: string
  permanently: boolean
  /** Unix milliseconds. */
  until?: number
}

/** The code of a domain that the service itself has stopped for what it sends (standing.md). */
export const STOPPED_CODE = 'reputation'

type Column = keyof DomainRow
type FlagColumn = { [C in Column]: DomainRow[C] extends Flag ? C : never }[Column]

interface Stored<C extends Column, T> {
  readonly column: C
  /** Value of a new domain; undefined: each has its own. */
  readonly initial: DomainRow[C] | undefined
  load(stored: DomainRow[C]): T
  store(value: T): DomainRow[C]
}

const column = <const C extends Column, T extends DomainRow[C] = DomainRow[C]>(
  column: C,
  initial?: DomainRow[C],
): Stored<C, T> => ({ column, initial, load: (stored) => stored as T, store: (value) => value })

const flagColumn = <const C extends FlagColumn>(column: C): Stored<C, boolean> => ({
  column,
  initial: 0,
  load: (stored) => stored === 1,
  store: (value) => (value ? 1 : 0),
})

/** Null for what is not there. */
const jsonColumn = <T, const C extends 'disabled_json' | 'sending_ips_json'>(
  column: C,
): Stored<C, T | null> => ({
  column,
  initial: null,
  load: (stored) => (stored ? (JSON.parse(stored) as T) : null),
  store: (value) => value && JSON.stringify(value),
})

const shown = <C extends Column, T, S extends Shape<NonNullable<T>>>(to: Stored<C, T>, shape: S) => ({
  ...to,
  shape,
})

const settable = <C extends Column, T>(to: Stored<C, T>, input: Input<T | undefined>) => ({ ...to, input })

/** Shown, and set by creating and by changing a domain. */
const setting = <C extends Column, T, S extends Shape<NonNullable<T>>>(
  stored: Stored<C, T>,
  description: string,
  shape: (description: string) => S,
  input: (description: string) => Input<T | undefined>,
) => ({ ...settable(stored, input(description)), shape: shape(description) })

/** A setting that is off at first. */
const toggle = <const C extends FlagColumn>(column: C, description: string) =>
  setting(flagColumn(column), description, flag, flagParam)

/** How a field differs from others. */
interface Traits {
  /** Default: the name of the column. */
  readonly wire?: string
  /** Set by only one of the two. */
  readonly by?: 'create' | 'update'
  /** Shown with `h:extended` only. */
  readonly isExtended?: boolean
}
const having = <const B extends Traits, F>(traits: B, field: F) => ({ ...field, ...traits })

const SPAM_ACTIONS = ['disabled', 'tag', 'block'] as const
const WEB_SCHEMES = ['http', 'https'] as const
export const MTA_STS_MODES = ['off', 'testing', 'enforce', 'none'] as const
const URL_LENGTH_MAX = 2048
const IPS = 'Addresses to send from, separated by commas'

/** One label in lower case. */
export const atomParam = (description: string) =>
  wordParam(description, (text, name) => {
    const atom = atomOf(text)
    if (atom === null) throw new BadRequest(`${name} must be a valid atom`)
    return atom
  })

export const FIELDS = {
  id: shown(column('id'), text('24 hex digits')),
  accountId: column('account_id'),
  name: shown(column('name'), text('Host name', { example: 'example.com' })),
  type: shown(
    column<'type', 'custom' | 'sandbox'>('type'),
    oneOf('Sandbox domains are made by the service and reach few recipients', ['custom', 'sandbox']),
  ),
  state: shown(
    column<'state', 'active' | 'unverified' | 'disabled'>('state'),
    oneOf('Only active domains send', ['active', 'unverified', 'disabled']),
  ),
  disabled: jsonColumn<Disablement, 'disabled_json'>('disabled_json'),
  spamAction: setting(
    column<'spam_action', (typeof SPAM_ACTIONS)[number]>('spam_action', 'disabled'),
    'What happens to spam',
    (about) => oneOf(about, SPAM_ACTIONS),
    (about) => parsedParam(about, readSpamAction, { values: SPAM_ACTIONS }),
  ),
  wildcard: toggle('wildcard', 'Accept mail for subdomains too'),
  useAutomaticSenderSecurity: toggle(
    'use_automatic_sender_security',
    'The service keeps and rotates the keys',
  ),
  webScheme: setting(
    column<'web_scheme', 'http' | 'https'>('web_scheme', 'http'),
    'Scheme of tracking links',
    (about) => oneOf(about, WEB_SCHEMES),
    (about) => choiceParam(about, WEB_SCHEMES),
  ),
  webPrefix: setting(column('web_prefix', 'email'), 'First label of the tracking host', text, atomParam),
  /** The chosen host of return paths; `returnPathHost` says whether it is used. */
  mailfromHost: having(
    { by: 'update', isExtended: true },
    setting(
      column('mailfrom_host'),
      'Host of return paths; bounces are sent to its MX (domains.md rule 16)',
      (about) => optional(text(about)),
      (about) =>
        wordParam(about, (text, name) => {
          if (hostNameOf(text) !== text) throw invalidChoice(name, text)
          return text
        }),
    ),
  ),
  messageTtlSeconds: having(
    { wire: 'message_ttl' },
    setting(
      column('message_ttl_seconds', 0),
      'Seconds; 0: the default of the service',
      integer,
      integerParam,
    ),
  ),
  requireTls: toggle('require_tls', 'Deliver over TLS only'),
  skipVerification: toggle('skip_verification', 'Do not verify certificates'),
  cfblAddress: toggle('cfbl_address', 'Bulk mail asks receivers for complaints by fbl@ (RFC 9477)'),
  feedbackId: toggle('feedback_id', "Bulk mail has Gmail's Feedback-ID"),
  archiveTo: setting(
    column('archive_to', null),
    'http(s) URL that gets a copy of delivered mail; empty or absent: none',
    (about) => optional(text(about)),
    (about) => parsedParam(about, readArchiveTo),
  ),
  sendWindow: setting(
    column('send_window', null),
    'Hours in which mail is sent, such as `Mon-Fri 09:00-17:00 Europe/Berlin`; empty or absent: at any time',
    (about) => optional(text(about)),
    (about) => parsedParam(about, readSendWindow),
  ),
  mtaSts: having(
    { by: 'update', isExtended: true },
    setting(
      column('mta_sts', 'off'),
      'MTA-STS policy that is published for the domain: its mail hosts for testing or to be enforced, none, or no policy (domains.md rule 28)',
      (about) => optional(oneOf(about, MTA_STS_MODES)),
      (about) => choiceParam(about, MTA_STS_MODES),
    ),
  ),
  mtaStsMaxAge: having(
    { by: 'update', isExtended: true },
    setting(
      column('mta_sts_max_age', 604_800),
      'Seconds for which senders keep that policy',
      (about) => optional(integer(about)),
      (about) => integerParam(about, { min: 86_400, max: 31_557_600 }),
    ),
  ),
  encryptIncomingMessage: having(
    { by: 'create' },
    toggle('encrypt_incoming_message', 'Is stored and has no effect; cannot be undone'),
  ),
  /** Chosen when the domain was created; null: all of the account. */
  sendingIps: having(
    { wire: 'ips', by: 'create' },
    settable(
      jsonColumn<readonly string[], 'sending_ips_json'>('sending_ips_json'),
      parsedParam(IPS, readIps),
    ),
  ),
  sendingPoolId: having(
    { wire: 'pool_id', by: 'create' },
    settable(column('sending_pool_id', null), textParam('IP pool to send from')),
  ),
  /** Where the domain is enrolled in dynamic pools: that of its band. */
  dynamicPoolId: column('dynamic_pool_id', null),
  /** The chosen authority, whose records the domain shows; signs once it has an active key. */
  dkimHost: having(
    { wire: 'dkim_host', isExtended: true },
    shown(column('dkim_authority'), optional(text('Domain whose keys are to sign'))),
  ),
  /** Signs until `dkimHost` has an active key; null: that one signs. */
  signingAuthority: column('signing_authority', null),
  /** The authority changed and its records have not been checked since. */
  dkimUnverified: flagColumn('dkim_unverified'),
  /** SPF and DKIM were valid at the last check; `state` says the same unless the domain is disabled. */
  verified: flagColumn('verified'),
  /** The tracking host's record was valid at the last check; otherwise links use the fallback host. */
  trackingValid: flagColumn('tracking_valid'),
  /** The SPF record of `mailfromHost` was valid at the last check. */
  returnPathValid: flagColumn('return_path_valid'),
  createdAt: column('created_at'),
}

type F = typeof FIELDS
type Part<K extends keyof F, P extends string> = F[K] extends { readonly [N in P]: infer V } ? V : never
/** Names on the wire of the fields that have the part. */
type Wire<K extends keyof F, P extends string> = [Part<K, P>] extends [never]
  ? never
  : F[K] extends { wire: infer N extends string }
    ? N
    : F[K]['column']
type InputsOf<By> = {
  [K in keyof F as F[K] extends { by: Exclude<Traits['by'], By> } ? never : Wire<K, 'input'>]: Part<
    K,
    'input'
  >
}

/** What a row holds. */
export type DomainFields = { readonly [K in keyof F]: ReturnType<F[K]['load']> }

/** What a caller may change about a domain, by name on the wire; absent: unchanged. */
export type DomainChanges = Partial<InputOf<InputsOf<'update'>>>

interface AnyField extends Traits {
  readonly column: Column
  readonly initial: unknown
  load(stored: unknown): unknown
  store(value: unknown): unknown
  readonly shape?: Shape<unknown>
  readonly input?: Input<unknown>
}
const TABLE = Object.entries<AnyField>(FIELDS).map(([key, field]) => ({ key, wire: field.column, ...field }))

const collect = (pick: (field: (typeof TABLE)[number]) => readonly [string, unknown] | false | undefined) =>
  Object.fromEntries(TABLE.map(pick).filter((entry) => entry !== undefined && entry !== false))

export const fieldsOfRow = (row: DomainRow) =>
  collect(({ key, column, load }) => [key, load(row[column])]) as DomainFields

/** The row of a new domain, without what each has of its own. */
export const INITIAL_ROW = collect(({ column, initial }) => [column, initial]) as Pick<
  DomainRow,
  F[keyof F]['column']
>

/** The columns of the given settings. */
export const columnsOf = (changes: DomainChanges): Partial<DomainRow> =>
  collect(({ wire, input, column, store }) => {
    const value = changes[wire as keyof DomainChanges]
    return input && value !== undefined && [column, store(value)]
  })

/** The parameters that set fields. */
export const settingInputs = <const By extends 'create' | 'update'>(setBy: By) =>
  collect(({ wire, input, by = setBy }) => input && by === setBy && [wire, input]) as InputsOf<By>

/** The shapes of the fields that are shown. */
export const FIELD_SHAPES = collect(({ wire, shape }) => shape && [wire, shape]) as {
  [K in keyof F as Wire<K, 'shape'>]: Part<K, 'shape'>
}
const SHOWN = object('', FIELD_SHAPES)

export const shownFields = (domain: DomainFields, withExtended: boolean) =>
  collect(({ key, wire, shape, isExtended = false }) => {
    const value = domain[key as keyof F]
    return shape && value !== null && (withExtended || !isExtended) && [wire, value]
  }) as Of<typeof SHOWN>

/** The settings that a new domain may have and a domain shows, with their first values. */
export const FIRST_SETTINGS: Readonly<Record<string, unknown>> = collect(
  ({ wire, shape, input, by, load, initial }) => shape && input && by !== 'update' && [wire, load(initial)],
)

/** @throws BadRequest */
function readSpamAction(params: Params, name: string) {
  const action = params.oneOf(name, [...SPAM_ACTIONS, 'delete'])
  return action === 'delete' ? 'block' : action
}

/** Null clears it. @throws BadRequest */
function readArchiveTo(params: Params, name: string): string | null | undefined {
  const text = params.given(name)
  if (!text) return text === '' ? null : undefined
  const url = URL.canParse(text) ? new URL(text) : null
  // No user info: it would store a password in plain text, and nothing is ever posted to such a URL.
  const isUsable =
    url && /^https?:$/.test(url.protocol) && /^[\x21-\x7e]+$/.test(text) && !url.username && !url.password
  if (!isUsable || text.length > URL_LENGTH_MAX) throw invalidChoice(name, text)
  return text
}

/** Null clears it. @throws BadRequest */
function readSendWindow(params: Params, name: string): string | null | undefined {
  const text = params.given(name)?.trim()
  if (!text) return text === '' ? null : undefined
  if (weeklyWindow(text) === null) throw invalidChoice(name, text)
  return text
}

function readIps(params: Params, name: string): string[] | undefined {
  const ips = params.texts(name).flatMap((text) => text.split(',').map((ip) => ip.trim()))
  return ips.length > 0 ? ips : undefined
}
