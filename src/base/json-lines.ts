/**
 * On which line of a JSON text each value is, so that a fault in a file can be reported with its place. The text has been
 * parsed before: what is not JSON is not noticed here.
 */

export type JsonLines = ReturnType<typeof jsonLines>

/** Values whose places are kept: a file with more is reported by the lines of what contains them. */
const PLACES_MAX = 100_000

export function jsonLines(text: string) {
  const lines = new Map<string, number>([['', 1]])
  /** Paths of members that an object has twice: only the last one counts. */
  const repeated: string[] = []
  /** Objects and lists around the present place; `count`: finished values of a list. */
  const around: { path: string; isList: boolean; key: string | null; count: number }[] = []
  let line = 1

  function pathHere(): string {
    const inside = around.at(-1)
    if (inside === undefined) return ''
    if (inside.isList) return `${inside.path}[${inside.count}]`
    return inside.path === '' ? (inside.key ?? '') : `${inside.path}.${inside.key ?? ''}`
  }

  function value(): string {
    const path = pathHere()
    if (lines.has(path) && path !== '') repeated.push(path)
    if (lines.size < PLACES_MAX) lines.set(path, line)
    return path
  }

  const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:\n]|[^\s"{}[\],:]+/g
  for (const [token] of text.matchAll(TOKENS)) {
    const inside = around.at(-1)
    if (token === '\n') line++
    else if (token === '{' || token === '[')
      around.push({ path: value(), isList: token === '[', key: null, count: 0 })
    else if (token === '}' || token === ']') around.pop()
    else if (token === ',') {
      if (inside?.isList) inside.count++
      else if (inside) inside.key = null
    } else if (token !== ':') {
      if (inside && !inside.isList && inside.key === null) inside.key = JSON.parse(token) as string
      else value()
    }
  }

  return {
    /** The line, from 1, of the value at a path such as `providers[2].mx`; of the nearest one around it if there is none. */
    lineOf(path: string): number {
      for (let at = path; ; at = at.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
        const found = lines.get(at)
        if (found !== undefined || at === '') return found ?? 1
      }
    },
    repeated,
  }
}
