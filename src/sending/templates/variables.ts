/**
 * The variables that a template uses, read from its parsed texts: those of branches that no rendering has entered too. Positions of a
 * list (`@index`) and `this` of the outermost level are none.
 */
import { pathOf } from './rendering/program.ts'

/** What a place needs: a list for `each`, anything for `if`, else a text. */
export type VariableKind = 'text' | 'list' | 'condition'

export interface UsedVariable {
  /** Names from the outermost; `[]` stands for each item of a list. */
  path: string[]
  kind: VariableKind
}

/** More would not be read. */
const VARIABLES_MAX = 200
/** Longer paths are left out: each use of a name in a deep block repeats the whole of it. */
const PATH_PARTS_MAX = 32
const PATH_CHARS_MAX = 500
const ITEM = '[]'

type Path = readonly string[]

/** What names are looked up in; null: nothing that has a name. */
interface Scope {
  readonly path: Path | null
  readonly outer: Scope | null
  readonly named: ReadonlyMap<string, Path | null>
}

/** In the order of their first use. A text is more than a list, and a list more than a condition. */
export function usedVariables(programs: readonly hbs.AST.Program[]): UsedVariable[] {
  const reader = new Reader()
  const root: Scope = { path: [], outer: null, named: new Map() }
  for (const program of programs) reader.program(program, root)
  return [...reader.found.values()]
}

const RANKS: readonly VariableKind[] = ['condition', 'list', 'text']

class Reader {
  readonly found = new Map<string, UsedVariable>()

  program(program: hbs.AST.Program | undefined, scope: Scope): void {
    for (const node of program?.body ?? []) {
      if (node.type === 'MustacheStatement')
        this.#use(pathOf((node as hbs.AST.MustacheStatement).path), scope, 'text')
      else if (node.type === 'BlockStatement') this.#block(node as hbs.AST.BlockStatement, scope)
    }
  }

  #block({ path, params, program, inverse }: hbs.AST.BlockStatement, scope: Scope): void {
    const [first] = params
    const name = first === undefined ? null : (path as hbs.AST.PathExpression).original
    if (name === null) this.#section(pathOf(path), program, scope)
    else if (name === 'each' || name === 'with')
      this.#entered(name, first as hbs.AST.Expression, program, scope)
    else {
      for (const param of params) this.#argument(param, scope, 'condition')
      this.program(program, scope)
    }
    this.program(inverse, scope)
  }

  #entered(
    name: 'each' | 'with',
    list: hbs.AST.Expression,
    program: hbs.AST.Program | undefined,
    scope: Scope,
  ): void {
    const path = this.#argument(list, scope, name === 'each' ? 'list' : 'condition')
    const inner = path && (name === 'each' ? [...path, ITEM] : path)
    const [value, key] = program?.blockParams ?? []
    const named = new Map(scope.named)
    if (value !== undefined) named.set(value, inner)
    if (key !== undefined) named.set(key, null)
    this.program(program, { path: inner, outer: scope, named })
  }

  /** `{{#name}}` repeats a list or asks a condition: it is a list if names are looked up in it. */
  #section(block: hbs.AST.PathExpression, program: hbs.AST.Program | undefined, scope: Scope): void {
    const path = this.#use(block, scope, 'condition')
    const before = this.found.size
    this.program(program, { path: path && [...path, ITEM], outer: scope, named: scope.named })
    if (path && this.found.size > before) this.#add(path, 'list')
  }

  /** Literals are no variables here. */
  #argument(node: hbs.AST.Node, scope: Scope, kind: VariableKind): Path | null {
    return node.type === 'PathExpression' ? this.#use(node as hbs.AST.PathExpression, scope, kind) : null
  }

  /** Notes the variable that a name reads. Returns its path. */
  #use(node: hbs.AST.PathExpression, scope: Scope, kind: VariableKind): Path | null {
    const path = pathIn(node, scope)
    if (path !== null && path.length > 0) this.#add(path, kind)
    return path
  }

  #add(path: Path, kind: VariableKind): void {
    const key = JSON.stringify(path)
    const known = this.found.get(key)
    if (known === undefined) {
      if (this.found.size < VARIABLES_MAX) this.found.set(key, { path: [...path], kind })
    } else if (RANKS.indexOf(kind) > RANKS.indexOf(known.kind)) known.kind = kind
  }
}

/** Null: a position in a list, or what has no name. */
function pathIn(node: hbs.AST.PathExpression, scope: Scope): Path | null {
  const { data, depth, parts, original } = node
  if (data) return parts[0] === 'root' ? bounded(parts.slice(1)) : null
  const isPlain = depth === 0 && !/^(?:this\b|\.)/.test(original)
  const named = isPlain ? scope.named.get(parts[0] as string) : undefined
  if (named !== undefined) return named && bounded([...named, ...parts.slice(1)])
  let at: Scope | null = scope
  for (let up = depth; at && up > 0; up--) at = at.outer
  return at?.path ? bounded([...at.path, ...parts]) : null
}

const bounded = (path: Path) =>
  path.length <= PATH_PARTS_MAX && path.join('').length <= PATH_CHARS_MAX ? path : null
