/**
 * Named points at which a test lets the process die, as a power cut would: `SENDWRIGHT_TEST_FAIL_POINT=name:n`
 * kills it when the point is reached for the nth time. Not armed, a point costs one comparison.
 */
export type FailPoint =
  | 'accept-before-commit'
  | 'accept-after-commit'
  | 'claim-before-commit'
  | 'claim-after-commit'
  | 'attempt-before'
  | 'connect-before'
  | 'connect-after'
  | 'dot-before'
  | 'attempt-after'
  | 'settle-before-commit'
  | 'settle-after-commit'
  | 'start-after-reclaim'
  | 'token-before-commit'
  | 'dns-before-write'
  | 'dns-after-write'
  | 'move-before-copy'
  | 'move-between'
  | 'move-before-commit'
  | 'move-after-commit'
  | 'move-after-files'

let armed: { name: string; left: number } | null = null

/** @param spec `name:count`. Called once, at the start of the process. */
export function armFailPoint(spec: string): void {
  const [name = '', count = '1'] = spec.split(':')
  armed = { name, left: Number(count) }
}

export function failPoint(name: FailPoint): void {
  if (armed === null || armed.name !== name) return
  armed.left--
  if (armed.left <= 0) process.kill(process.pid, 'SIGKILL')
}
