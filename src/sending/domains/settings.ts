/** What callers say of a new domain and of a changed one (domains.md D2, D4, D8-D11): the table of fields, and what is no field. */
import { BadRequest } from '../../base/process/errors.ts'
import { invalidChoice } from '../../base/values.ts'
import {
  flagParam,
  type InputOf,
  parsedParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { atomParam, settingInputs } from './fields.ts'
import { hostNameOf, rootDomainOf, unclaimableReason } from './names/domain-names.ts'

const PASSWORD_LENGTH_MIN = 5
const PASSWORD_LENGTH_MAX = 32

/** @param form the member in which D9 returns the error for a value over the maximum */
export const ttlParam = (max: number, form: 'message' | 'Reason' = 'message') =>
  parsedParam(
    `Seconds, at most ${max}; 0 is the default of the service`,
    (params, name) => {
      const seconds = params.integer(name, { min: 0 })
      if (seconds !== undefined && seconds > max)
        throw new BadRequest(`${name} is larger than the account maximum of ${max}`, { form })
      return seconds
    },
    { type: 'integer' },
  )

const PASSWORD = wordParam('Password of the login postmaster@<name>; 5 to 32 characters', (password) => {
  const length = [...password].length
  const fault = length < PASSWORD_LENGTH_MIN ? 'short' : length > PASSWORD_LENGTH_MAX ? 'long' : null
  if (fault)
    throw new BadRequest(
      `Password is too ${fault}. It must be between ${PASSWORD_LENGTH_MIN} and ${PASSWORD_LENGTH_MAX} characters.`,
    )
  return password
})

/** The parameters of D4. */
export const updateInputs = (ttlMax: number) => ({
  smtp_password: PASSWORD,
  ...settingInputs('update'),
  message_ttl: ttlParam(ttlMax),
})

/** The parameters of D2. */
export const createInputs = (ttlMax: number) => ({
  name: wordParam('Host name, ASCII', nameOf, {
    required: true,
    missing: "Parameter 'name' is missing",
    example: 'example.com',
  }),
  ...settingInputs('create'),
  message_ttl: ttlParam(ttlMax),
  smtp_password: PASSWORD,
  force_dkim_authority: flagParam('false: a registered parent domain signs'),
  force_root_dkim_host: flagParam('Sign with the root domain; default false'),
  dkim_host_name: textParam('The domain, one below it, or its root'),
  dkim_selector: atomParam('Atom without dots; default k1'),
  dkim_key_size: parsedParam(
    '1024 or 2048',
    (params, name) => Number(params.oneOf(name, ['1024', '2048']) ?? 2048),
    { type: 'integer', default: 2048 },
  ),
})

export type NewDomain = InputOf<ReturnType<typeof createInputs>>

/** @throws BadRequest with the texts of domains.md section 3 */
function nameOf(text: string): string {
  const name = hostNameOf(text)
  if (name === null) throw new BadRequest('Invalid domain name')
  const reason = unclaimableReason(name)
  if (reason !== null) throw new BadRequest(`Invalid domain name: ${name} ${reason}`)
  return name
}

/** How the domain's signing authority is chosen. */
export type DkimChoice =
  | { kind: 'self' }
  /** The nearest registered parent, if there is one. */
  | { kind: 'parent' }
  | { kind: 'root'; host: string }
  | { kind: 'named'; host: string }

/** domains.md rule 15. @throws BadRequest */
export function dkimChoice(wanted: NewDomain): DkimChoice {
  const { name, dkim_host_name: hostName } = wanted
  const { force_dkim_authority: forceSelf, force_root_dkim_host: forceRoot } = wanted
  if (hostName === undefined) {
    if (forceRoot) return { kind: 'root', host: rootDomainOf(name) }
    return { kind: forceSelf === false ? 'parent' : 'self' }
  }
  if (forceSelf !== undefined || forceRoot !== undefined)
    throw new BadRequest('dkim_host_name cannot be used with force_dkim_authority or force_root_dkim_host')
  const host = hostNameOf(hostName)
  if (host === null || !(host === name || host.endsWith(`.${name}`) || host === rootDomainOf(name)))
    throw invalidChoice('dkim_host_name', hostName)
  return { kind: 'named', host }
}
