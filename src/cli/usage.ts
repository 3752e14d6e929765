import { readFileSync } from 'node:fs'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearestName } from '../base/nearest-name.ts'

/** A command that cannot be carried out as given; its message is for a person. */
export class CommandError extends Error {
  readonly exitCode: number
  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The text of a file, for what other users of the machine would see in an argument. `what` names it. @throws CommandError */
export function secretIn(file: string, what: string, exitCode?: number): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new CommandError(`Cannot read ${what}: ${(error as Error).message}`, exitCode)
  }
}

/** Arguments that the command does not know: one sentence, and where its options are described. Exit code 2. */
export function wrongArguments(command: string, sentence: string): CommandError {
  return new CommandError(`${sentence}; "sendwright help ${command}" describes it.`, 2)
}

/** Options of these names that take a text. */
export const texts = <const Name extends string>(...names: Name[]) => options(names, { type: 'string' })

/** Options that take a text, and may be given several times. */
export const lists = <const Name extends string>(...names: Name[]) =>
  options(names, { type: 'string', multiple: true })

/** Options that are given or not. */
export const switches = <const Name extends string>(...names: Name[]) => options(names, { type: 'boolean' })

const options = <Name extends string, const Type>(names: Name[], type: Type) =>
  Object.fromEntries(names.map((name) => [name, type])) as Record<Name, Type>

type Options = NonNullable<ParseArgsConfig['options']>

/** The options of a command that takes nothing else. @throws CommandError as `wrongArguments` */
export const parseFlags = <const Known extends Options>(command: string, args: string[], known: Known) =>
  parsed(command, { args, options: known }).values

/** The same of a command that takes words besides. @throws CommandError as `wrongArguments` */
export const parseWords = <const Known extends Options>(command: string, args: string[], known: Known) =>
  parsed(command, { args, options: known, allowPositionals: true })

function parsed<const Config extends ParseArgsConfig>(command: string, config: Config) {
  try {
    return parseArgs(config)
  } catch (error) {
    // Advice follows, such as how to give an argument that begins with a dash.
    const [sentence = ''] = (error as Error).message.split(/\. (?=[A-Z])|\n/)
    const [, unknown = ''] = /^Unknown option '--([\w-]+)/.exec(sentence) ?? []
    throw wrongArguments(command, sentence + didYouMean(unknown, Object.keys(config.options ?? {}), '--'))
  }
}

/** ` (did you mean X?)`, or nothing where no known word is near. */
export function didYouMean(word: string, known: readonly string[], prefix = ''): string {
  const near = word === '' ? null : nearestName(word, known)
  return near === null ? '' : ` (did you mean ${prefix}${near}?)`
}

/** One command of the program. Its modules are loaded when it is called. */
export interface Command {
  /** What it does, in one line. */
  summary: string
  load(): Promise<{
    /** Its forms and options, for a person. */
    usage: string
    run(args: string[]): Promise<void>
  }>
}

/** The text of `sendwright --help`. */
export function overview(commands: Record<string, Command>): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `sendwright <command> [options]

${lines.join('\n')}

  sendwright help <command>   the options of one command
  sendwright --version        the version

Settings come from the environment (SENDWRIGHT_...) or from the file that SENDWRIGHT_ENV_FILE names; docs/settings.md
lists them. With --json, commands that print facts print one JSON document on standard output and nothing else there.
Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 done in part (import, export).
`
}
