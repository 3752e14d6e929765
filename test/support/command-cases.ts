/**
 * Runs many command lines in one process, one after the other: a start of its own for each would take minutes in all.
 * Standard input is a JSON list of `CommandCase`, standard output one of `CommandResult` in the same order.
 */
import { execFile } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { runProgram } from '../../src/cli/program.ts'
import { type CommandResult, commandEnvironment } from './command.ts'

export interface CommandCase {
  args: readonly string[]
  /** Settings beside those of all. */
  env?: Record<string, string>
}

/** In a process with `env` only. */
export function runCases(
  env: Record<string, string>,
  cases: readonly CommandCase[],
): Promise<CommandResult[]> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...commandEnvironment(), ...env }, maxBuffer: 16e6 }
    const child = execFile(process.execPath, [import.meta.filename], options, (error, out, err) => {
      if (error) reject(new Error(`The command lines ended the process: ${err}`, { cause: error }))
      else resolve(JSON.parse(out) as CommandResult[])
    })
    child.stdin?.end(JSON.stringify(cases))
  })
}

/** What the command wrote, instead of writing it. */
async function captured({ args, env = {} }: CommandCase): Promise<CommandResult> {
  const result = { code: -1, out: '', err: '' }
  const before = { ...process.env }
  const writes = [process.stdout.write, process.stderr.write] as const
  const into = (name: 'out' | 'err') => (chunk: string | Uint8Array) => {
    result[name] += String(chunk)
    return true
  }
  try {
    Object.assign(process.env, env)
    process.stdout.write = into('out')
    process.stderr.write = into('err')
    result.code = await runProgram([...args])
  } finally {
    ;[process.stdout.write, process.stderr.write] = writes
    process.env = before
  }
  return result
}

async function main(): Promise<void> {
  // Each run watches the output; as the program it is one run.
  for (const output of [process.stdout, process.stderr]) output.setMaxListeners(0)
  const results: CommandResult[] = []
  for (const one of JSON.parse(await text(process.stdin)) as CommandCase[]) results.push(await captured(one))
  process.stdout.write(JSON.stringify(results))
}

if (import.meta.main) await main()
