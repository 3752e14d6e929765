/** A command that cannot be carried out as given; its message is for a person. */
export class CommandError extends Error {
  readonly exitCode: number
  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
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
lists them. Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 done in part (import, export).
`
}
