/** Helper processes: sink and load generators. IPC with one question at a time and one answer each. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Rig, within } from './rig.ts'

export interface Helper<Question, Answer> {
  readonly pid: number
  /** @throws when it ends, answers with an error, or takes longer than `limitMs` */
  ask(question: Question, limitMs: number): Promise<Answer>
}

type Reply<Answer> = { answer: Answer } | { error: string }

/** `file`: a file of this folder that calls `serveHelper`. The process ends with the rig. */
export function startHelper<Question, Answer>(rig: Rig, file: string): Helper<Question, Answer> {
  // Without the flags of this process: profiling the bench must not profile its helpers.
  const child = fork(join(import.meta.dirname, file), {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  child.on('error', () => {}) // reported by `ask`, through the exit
  rig.defer(file, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let last: Promise<unknown> = Promise.resolve()
  const askNow = (question: Question) =>
    new Promise<Answer>((resolve, reject) => {
      const ended = () => reject(new Error(`${file} ended`))
      child.once('exit', ended)
      child.once('message', (reply: Reply<Answer>) => {
        child.off('exit', ended)
        if ('error' in reply) reject(new Error(`${file}: ${reply.error}`))
        else resolve(reply.answer)
      })
      if (child.exitCode !== null || child.signalCode !== null) ended()
      else child.send(question as object)
    })
  return {
    pid: child.pid as number,
    ask(question, limitMs) {
      const asked = last.catch(() => {}).then(() => within(limitMs, `answer of ${file}`, askNow(question)))
      last = asked
      return asked
    },
  }
}

/** In the helper: answers every question, and ends with the process that started it. */
export function serveHelper<Question, Answer>(answer: (question: Question) => Promise<Answer>): void {
  process.on('disconnect', () => process.exit(0))
  process.on('message', (question: Question) => {
    answer(question).then(
      (value) => process.send?.({ answer: value }),
      (error: unknown) => process.send?.({ error: String(error instanceof Error ? error.stack : error) }),
    )
  })
}
