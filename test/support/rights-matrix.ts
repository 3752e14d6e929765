/** Who calls, on whose things, and what the rights table says about it. */
import { Agent, request } from 'node:http'
import type { DescribedRights } from '../../src/platform/http/rights/auth.ts'
import type { Role } from '../../src/platform/http/rights/rights.ts'
import type { Holdings } from './account-holdings.ts'
import { type Call, callOf, type DescribedOperation, type Given } from './described-calls.ts'
import type { CallOptions, TestService } from './service.ts'

export interface Actor {
  name: string
  role: Role | 'public' | 'none'
  /** A session of a user. */
  isUser?: boolean
  credentials: Pick<CallOptions, 'key' | 'headers'>
}

export type Verdict = 'allowed' | 401 | 403 | 404

/**
 * `isOwn`: the things are of the account of the actor's key. `isFirst`: the call runs in the first account. `isItself`:
 * it runs in the account of the actor's key.
 */
export function verdictOf(
  rights: DescribedRights,
  { role, isUser = false }: Actor,
  { isOwn, isFirst, isItself = isFirst }: { isOwn: boolean; isFirst: boolean; isItself?: boolean },
): Verdict {
  if (role === 'none') return 401
  if (role === 'public') return rights.public_key !== true ? 401 : isItself ? 'allowed' : 403
  const hasRight = rights.roles.includes(role)
  if (role === 'sending') return hasRight && isOwn ? 'allowed' : 401
  if (!hasRight) return 403
  switch (rights.only) {
    case 'machine':
      return 403
    case 'user':
    case 'user-session':
      // A user is not a user of the subaccount that it acts for.
      return !isUser ? 403 : isFirst ? 'allowed' : 404
    case 'first':
      return isFirst ? 'allowed' : 403
    case 'itself':
      return isItself ? 'allowed' : 403
    // The accounts of this test that call for themselves are no subaccounts.
    case 'parent':
      return isFirst ? 'allowed' : 403
    default:
      return 'allowed'
  }
}

export interface Outcome {
  status: number
  /** With the names of things instead of their values. */
  text: string
}

const AT_A_TIME = 16

export class Matrix {
  readonly #service: TestService
  readonly #given: Given
  readonly #agent = new Agent({ keepAlive: true, maxSockets: AT_A_TIME })
  readonly faults: string[] = []
  calls = 0

  constructor(service: TestService, given: Given) {
    this.#service = service
    this.#given = given
  }

  /** `outer`: whose domain holds the things, where it is another's. */
  async call(
    operation: DescribedOperation,
    actor: Actor,
    holdings: Holdings,
    { behalf, outer }: { behalf?: string; outer?: Holdings } = {},
  ): Promise<Outcome> {
    const call = callOf(operation, holdings, this.#given, outer)
    const headers = { ...actor.credentials.headers, ...(behalf && { 'x-service-on-behalf-of': behalf }) }
    const { status, text } = await this.#send(call, { ...actor.credentials, headers })
    if (status >= 500) this.faults.push(`${describe(operation, actor)}: ${status} ${text}`)
    return { status, text: named(named(text, holdings), outer ?? {}) }
  }

  /** The answers about two things must be the same: the actor has nothing to do with either. */
  async same(
    operation: DescribedOperation,
    actor: Actor,
    what: string,
    things: readonly [Holdings, Holdings],
    more: { behalf?: string; outer?: Holdings } = {},
  ): Promise<void> {
    const [one, other] = await Promise.all(things.map((held) => this.call(operation, actor, held, more)))
    if (one?.status !== other?.status || one?.text !== other?.text)
      this.faults.push(
        `${describe(operation, actor)}, ${what}: ${one?.status} ${one?.text} or ${other?.status} ${other?.text}`,
      )
  }

  expect(
    operation: DescribedOperation,
    actor: Actor,
    what: string,
    outcome: Outcome,
    isRight: boolean,
  ): void {
    if (!isRight)
      this.faults.push(
        `${describe(operation, actor)}, ${what}: ${outcome.status} ${outcome.text.slice(0, 200)}`,
      )
  }

  close(): void {
    this.#agent.destroy()
  }

  async #send({ method, path, options }: Call, credentials: CallOptions): Promise<Outcome> {
    this.calls++
    const { json, form } = options
    if (form && Object.values(form).some((value) => typeof value === 'object'))
      return this.#service.call(method, path, { ...options, ...credentials })
    const type = json === undefined ? 'application/x-www-form-urlencoded' : 'application/json'
    const text =
      json === undefined
        ? new URLSearchParams(form as Record<string, string> | undefined).toString()
        : JSON.stringify(json)
    return this.#request(method, path, credentials, text === '' ? null : { type, text })
  }

  /** By the plain client: `fetch` costs three times as much, and there are thousands of calls. */
  #request(
    method: string,
    path: string,
    { key = null, headers = {} }: CallOptions,
    body: { type: string; text: string } | null,
  ): Promise<Outcome> {
    const all = {
      ...headers,
      ...(key !== null && { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }),
      ...(body && { 'content-type': body.type, 'content-length': Buffer.byteLength(body.text) }),
    }
    return new Promise((resolve, reject) => {
      const call = request(
        this.#service.url + path,
        { method, agent: this.#agent, headers: all },
        (answer) => {
          const status = answer.statusCode ?? 0
          // Its body never ends.
          if (answer.headers['content-type']?.startsWith('text/event-stream')) {
            answer.destroy()
            return resolve({ status, text: '' })
          }
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (part: string) => {
            text += part
          })
          answer.on('end', () => {
            if (BARE.test(text) && !answer.headers['x-service-refused'])
              this.faults.push(`${method} ${path}: ${status} without a cause`)
            resolve({ status, text })
          })
          answer.on('error', reject)
        },
      )
      call.on('error', reject)
      call.end(body?.text)
    })
  }
}

/** The contract's texts that name no cause. */
const BARE = /^(?:Forbidden|\{"message":"(?:Forbidden|Invalid private key)"\})$/

/** Several at a time, in order of the list. */
export async function inParallel(works: readonly (() => Promise<void>)[]): Promise<void> {
  const left = [...works]
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) await next()
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, work))
}

const describe = ({ method, path }: DescribedOperation, { name }: Actor) => `${method} ${path} as ${name}`

/** Values this short, or of several accounts, are no names. */
const NAME_LENGTH_MIN = 6

function named(text: string, holdings: Holdings): string {
  const longestFirst = Object.entries(holdings).toSorted(([, one], [, other]) => other.length - one.length)
  return longestFirst.reduce(
    (left, [name, value]) => (value.length < NAME_LENGTH_MIN ? left : left.replaceAll(value, `<${name}>`)),
    text,
  )
}
