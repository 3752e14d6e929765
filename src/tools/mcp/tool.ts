/**
 * A task that an assistant may call, as one value: its arguments, what it is for, and what it does. Tools know nothing but
 * the operations of the API, which they call as their caller.
 */
import { type Fields, type ObjectShape, type Of, object } from '../../base/shape.ts'
import { shapeFault } from '../../base/shape-check.ts'
import { isPlainObject } from '../../base/values.ts'

export type Item = Readonly<Record<string, unknown>>

/** The operations of the API, as the caller of the assistant. */
export interface Api {
  /** @throws Refused */
  read(path: string, query?: Query): Promise<Item>
  /** A call that is no GET. `once`: a key that was used already is refused. @throws Refused */
  call(method: string, path: string, body?: { json: unknown } | { form: Query }, once?: string): Promise<Item>
}

/** What is undefined is left out; a list repeats the name. */
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>

/** A call that was not carried out; the message is for the assistant. */
export class Refused extends Error {
  /** The status of the operation; of the HTTP API the same where the tool itself refuses. */
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

export interface ToolContext {
  api: Api
  caller: { accountId: string; keyId: string }
  /** Unix milliseconds. */
  now: number
}

export interface Tool {
  name: string
  title: string
  description: string
  input: ObjectShape<Fields>
  /** Null: it reads only. `destroys`: it cannot be undone. */
  writes: { destroys: boolean } | null
  /** It asks DNS or servers of others for what an argument names: whoever writes the argument can tell them something. */
  asksOthers: boolean
  /** @throws Refused */
  run(context: ToolContext, args: never): Promise<unknown>
}

/** A tool whose `run` has the type of its arguments. */
export function tool<const F extends Fields>(spec: {
  name: string
  title: string
  description: string
  input: F
  writes?: Tool['writes']
  asksOthers?: boolean
  run(context: ToolContext, args: Of<ObjectShape<F>>): Promise<unknown>
}): Tool {
  return { writes: null, asksOthers: false, ...spec, input: object('Arguments', spec.input) }
}

/** @throws Refused for arguments that the tool does not take */
export function checkArguments({ input }: Tool, given: unknown): void {
  const fault = shapeFault(input, given)
  if (fault !== null)
    throw new Refused(
      `Argument ${fault.path || 'object'} is ${fault.kind === 'missing' ? 'missing' : 'not valid'}`,
      400,
    )
  const unknown = Object.keys(isPlainObject(given) ? given : {}).find(
    (name) => !Object.hasOwn(input.fields, name),
  )
  if (unknown !== undefined)
    throw new Refused(`Unknown argument; known are ${Object.keys(input.fields).join(', ') || 'none'}`, 400)
}

/** A path whose values are each one part: `` at`/v4/domains/${name}` ``. */
export const at = (parts: TemplateStringsArray, ...values: readonly string[]): string =>
  String.raw({ raw: parts }, ...values.map(pathPart))

/** Half of a character is as good as none, but no encoding takes it. */
export const pathPart = (value: string): string => encodeURIComponent(value.toWellFormed())

export const itemsOf = (answer: Item): readonly Item[] => (answer['items'] ?? []) as readonly Item[]

/** The answer, or null where there is no such thing. @throws Refused for any other refusal */
export async function ifFound(answer: Promise<Item>): Promise<Item | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null
    throw error
  }
}

/** The answer, or why there is none: one part of a report that has others. */
export async function ifAllowed(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Refused) return { not_available: error.message }
    throw error
  }
}
