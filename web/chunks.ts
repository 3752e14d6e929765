/**
 * In which file of the built dashboard a module is: one for each section, and two for what several sections use. A file for
 * each page and each shared piece would be a request each, most of them for less than 3 KB.
 *
 * - What the first page needs before anything is loaded on demand is one file.
 * - What a page itself loads on demand, such as an editor or a guide, stays apart.
 */

/** As far as it is needed of what the bundler knows about a module. */
interface Module {
  importedIds: readonly string[]
  dynamicallyImportedIds: readonly string[]
}

interface Graph {
  getModuleInfo(id: string): Module | null
}

const SECTION = /\/web\/src\/(\w+)\/section\.ts$/
/** What loads the pages before a session. */
const SIGN_IN = /\/web\/src\/(?:session-gate|sign-in\/mailed-link-gate)\.tsx$/
/** The section that a visit begins with, in the mode that most begin with. */
const LANDING = 'inbox'
/** What it shares with others. */
const COMMON = 'common'
/** What others share. */
const MORE = 'more'

type Namer = (id: string, graph: Graph) => string | null

/**
 * Names the chunk of a module that pages of several sections need, or of one; null: another. `entry`: path of the module that
 * the page begins with. A group takes what its modules import with it: those of the entry must come first, then the common ones.
 */
export function chunksOf(entry: string): { common: Namer; more: Namer; section: Namer } {
  let places: ReadonlyMap<string, string> | undefined
  const placeOf = (id: string, graph: Graph) => {
    places ??= placeModules(entry, graph)
    return places.get(id) ?? null
  }
  return {
    common: (id, graph) => (placeOf(id, graph) === COMMON ? COMMON : null),
    more: (id, graph) => (placeOf(id, graph) === MORE ? MORE : null),
    section: placeOf,
  }
}

function placeModules(entry: string, graph: Graph): ReadonlyMap<string, string> {
  if (graph.getModuleInfo(entry) === null) throw new Error(`Cannot find ${entry} in the build`)
  const first = reachable([entry], graph, new Set())
  const users = new Map<string, string[]>()
  for (const file of first) {
    const section = SECTION.exec(file)?.[1] ?? (SIGN_IN.test(file) ? 'sign-in' : undefined)
    if (section === undefined) continue
    const pages = graph.getModuleInfo(file)?.dynamicallyImportedIds ?? []
    for (const id of reachable(pages, graph, first)) users.set(id, [...(users.get(id) ?? []), section])
  }
  return new Map([...users].map(([id, sections]) => [id, placeFor(sections)]))
}

function placeFor(sections: readonly string[]): string {
  const [one = '', ...others] = sections
  if (others.length === 0) return one
  return sections.includes(LANDING) ? COMMON : MORE
}

/** Modules that load without further ado with these, except `known`. */
function reachable(roots: readonly string[], graph: Graph, known: ReadonlySet<string>): Set<string> {
  const found = new Set<string>()
  const open = [...roots]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (known.has(id) || found.has(id)) continue
    found.add(id)
    open.push(...(graph.getModuleInfo(id)?.importedIds ?? []))
  }
  return found
}
