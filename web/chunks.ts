/**
 * In which file of the built dashboard a module is: one for each section, and some for what several sections use. A file for
 * each page and each shared piece would be a request each, most of them for less than 3 KB.
 *
 * - What every page needs before anything is loaded on demand is one file, with the libraries for it in another.
 * - A visit begins with one of two pages: what it shares with others is apart from what only others share.
 * - What a page itself loads on demand, such as an editor or a guide, stays apart.
 */

/** As far as it is needed of what the bundler knows about a module. */
interface Module {
  /** Its source, as it was loaded. */
  code: string | null
  importedIds: readonly string[]
  dynamicallyImportedIds: readonly string[]
}

interface Graph {
  getModuleInfo(id: string): Module | null
}

const SECTION = /\/web\/src\/(\w+)\/section\.ts$/
/** What loads the pages before a session. */
const SIGN_IN = /\/web\/src\/(?:session-gate|sign-in\/mailed-link-gate)\.tsx$/
/** The pages that a visit begins with, by the mode of the service. */
const LANDING = /\/(?:inbox\/(?:inbox-page|nothing-open)|overview\/overview-page)\.tsx$/
/** What several sections use, by which of those pages are among its users. */
const SHARED = {
  both: 'common',
  inbox: 'inbox-common',
  overview: 'overview-common',
  neither: 'more',
} as const

/** The list of all components of their library. A module that imports it needs those that it names. */
const COMPONENTS = /\/@mantine\/core\/esm\/index\.mjs$/
const NAMED = /import\s*\{([^}]*)\}\s*from\s*["']@mantine\/core["']/g
/** Their further parts, such as hooks of components, have no known user. */
const LIBRARY = /\/node_modules\/(?:@tanstack|@mantine)\//

type Namer = (id: string, graph: Graph) => string | null

/**
 * Names the chunk of a module that pages of several sections need, or of one; null: another. `entry`: path of the module that
 * the page begins with. A group takes what its modules import with it: those of the entry must come first, then the common ones.
 */
export function chunksOf(entry: string): { shared: Namer[]; section: Namer } {
  let places: ReadonlyMap<string, string> | undefined
  const placeOf = (id: string, graph: Graph) => {
    places ??= placeModules(entry, graph)
    return places.get(id) ?? (LIBRARY.test(id) ? SHARED.both : null)
  }
  return {
    shared: Object.values(SHARED).map((name) => (id, graph) => (placeOf(id, graph) === name ? name : null)),
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
    for (const [user, roots] of Object.entries(Object.groupBy(pages, (page) => userFor(section, page))))
      for (const id of reachable(roots ?? [], graph, first)) users.set(id, [...(users.get(id) ?? []), user])
  }
  return new Map([...users].map(([id, sections]) => [id, placeFor(sections)]))
}

/** Pages that a visit does not begin with are apart from the one of their section that it does. */
const userFor = (section: string, page: string) =>
  (section === 'inbox' || section === 'overview') && !LANDING.test(page) ? `${section}-pages` : section

function placeFor(sections: readonly string[]): string {
  const [one = '', ...others] = sections
  if (others.length === 0) return one
  const [inbox, overview] = [sections.includes('inbox'), sections.includes('overview')]
  if (inbox && overview) return SHARED.both
  return inbox ? SHARED.inbox : overview ? SHARED.overview : SHARED.neither
}

/** Modules that load without further ado with these, except `known`. */
function reachable(roots: readonly string[], graph: Graph, known: ReadonlySet<string>): Set<string> {
  const found = new Set<string>()
  const open = [...roots]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (known.has(id) || found.has(id)) continue
    found.add(id)
    open.push(...importsOf(id, graph))
  }
  return found
}

/** What a module imports; of the components only what it names. */
function importsOf(id: string, graph: Graph): readonly string[] {
  const { importedIds = [], code } = graph.getModuleInfo(id) ?? {}
  const components = importedIds.find((each) => COMPONENTS.test(each))
  if (components === undefined) return importedIds
  const named = [...(code ?? '').matchAll(NAMED)].flatMap(([, names = '']) => names.match(/\w+/g) ?? [])
  const parts = graph.getModuleInfo(components)?.importedIds ?? []
  return [
    ...importedIds.filter((each) => each !== components),
    ...parts.filter((part) => named.some((name) => part.endsWith(`/${name}.mjs`))),
  ]
}
