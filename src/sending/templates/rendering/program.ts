/**
 * Handlebars templates as hostile input. The text is read by the handlebars parser and made into closures
 * that walk plain data; the package's own compiler, which writes JavaScript, is never called.
 *
 * 1. `compileProgram` parses and rejects what the contract does not list: helpers other than the five
 *    blocks, partials, decorators, sub-expressions, named arguments (templates.md rules 20, 21).
 * 2. `Program.run` renders. It reads own properties only, so no prototype is ever reached, and limits its output and
 *    the processor time of its thread (templates.md rule 25).
 */
import Handlebars from 'handlebars'

/** Levels of blocks in a template, and of lists within a value that is written out. */
const DEPTH_MAX = 100
/** Bytes of one rendered template. */
export const OUTPUT_BYTES_MAX = 5_000_000
/** Processor time of one rendering. The limit is 500 ms; the rest is for what runs between two checks. */
const RENDER_CPU_MS_MAX = 350
/** Reading the clock costs 0.4 µs: about as much as this many steps. */
const STEPS_BETWEEN_LOOKS = 64
/** Pieces joined at a time: a string grown piece by piece holds 32 bytes more for each of them. */
const PIECES_JOINED = 1024
/** Characters escaped between two checks of the limits: each may become six, one by one. */
const ESCAPED_AT_ONCE = 4096
/** Names reported as missing; more would not be read. */
const MISSING_MAX = 100

/** A template contains something that is not allowed; `line` counts from 1. */
export class TemplateFault extends Error {
  constructor(line: number | null, why: string) {
    super(line === null ? why : `line ${line}: ${why}`)
  }
}

export type RenderLimit = 'depth' | 'output' | 'time'

/** A rendering that was stopped. */
export class LimitReached extends Error {
  readonly limit: RenderLimit
  constructor(limit: RenderLimit) {
    super(`limit reached: ${limit}`)
    this.limit = limit
  }
}

export type Program = ReturnType<typeof compileParsed>

/** The position of an `each` block in its list; `outer` is that of the enclosing block. */
interface Loop {
  key: string | number
  index: number
  first: boolean
  last: boolean
  readonly outer: Loop | null
}

/** What names are looked up in: `outer` is where `../` leads. */
interface Scope {
  readonly context: unknown
  readonly outer: Scope | null
  readonly loop: Loop | null
  readonly named: Named | null
}

/** Values that a block has named (`as |value key|`); `outer` are those of the enclosing block that names any. */
interface Named {
  readonly values: readonly unknown[]
  readonly outer: Named | null
}

type Part = (run: Run, scope: Scope) => void
type Value = (run: Run, scope: Scope) => unknown
type Ast = hbs.AST.Node

/** Compiles one text. `escaped`: `{{x}}` is written HTML-escaped; off for header fields.
 *  @throws TemplateFault */
export const compileProgram = (source: string, { escaped }: { escaped: boolean }): Program =>
  compileParsed(parseTemplate(source), { escaped })

/** The same of a text that is parsed: parsing takes most of the time. @throws TemplateFault */
export function compileParsed(parsed: hbs.AST.Program, { escaped }: { escaped: boolean }) {
  const compiler = new Compiler(escaped)
  const body = compiler.program(parsed, 1)
  return {
    /** How much was compiled: each part takes about 500 bytes. */
    parts: compiler.parts,
    /** `marked`: writes `{{name}}` for what is missing, for a preview. @throws LimitReached */
    run(variables: unknown, missing: Set<string> | null, marked = false): string {
      const run = new Run(variables, missing, marked)
      body(run, { context: variables, outer: null, loop: null, named: null })
      return run.result()
    },
  }
}

/** @throws TemplateFault */
export function parseTemplate(source: string): hbs.AST.Program {
  if (levelsOf(source) > DEPTH_MAX) throw tooDeep(null)
  try {
    return Handlebars.parse(source)
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep(null)
    throw faultOfParser(error as Error & { lineNumber?: number })
  }
}

/** Levels of blocks, counted by their tags: the parser's time grows with their square, 0.4 s for 3,000. */
function levelsOf(source: string): number {
  let level = 0
  let deepest = 0
  for (const [tag] of source.matchAll(/\{\{~?[#/]/g)) {
    level = Math.max(0, level + (tag.endsWith('#') ? 1 : -1))
    deepest = Math.max(deepest, level)
  }
  return deepest
}

/** The parser shows the position over several lines and lists its token names; what remains is one line. */
function faultOfParser(error: Error & { lineNumber?: number }): TemplateFault {
  const lines = error.message.split('\n')
  const [head = ''] = lines
  const line = error.lineNumber ?? Number(/ on line (\d+)/.exec(head)?.[1] ?? Number.NaN)
  const got = /, got '(\w+)'$/.exec(lines.at(-1) ?? '')?.[1]
  const why =
    got === undefined ? head.replace(/ - \d+:\d+$/, '').replace(/ on line \d+\.?/, '') : unexpected(got)
  return new TemplateFault(Number.isNaN(line) ? null : line, why)
}

const unexpected = (token: string) =>
  token === 'EOF' ? 'the template ends inside a block or expression' : `unexpected ${token}`

/** As written: what `each` or `with` enters. */
const lastPath = ({ params }: hbs.AST.BlockStatement) =>
  String((params[0] as { original?: unknown }).original)

const tooDeep = (line: number | null) => new TemplateFault(line, `nested over ${DEPTH_MAX} levels`)

const LOOP_NAMES = ['index', 'key', 'first', 'last'] as const
const BLOCKS: Readonly<Record<string, number>> = { if: 1, unless: 1, each: 1, with: 1, equal: 2 }
const isBlockName = (name: string) => Object.hasOwn(BLOCKS, name)

class Compiler {
  parts = 0
  private readonly escaped: boolean
  /** Names that the blocks around give to values, innermost first. */
  private named: readonly (readonly string[])[] = []

  constructor(escaped: boolean) {
    this.escaped = escaped
  }

  program(program: hbs.AST.Program | undefined, depth: number): Part {
    if (!program) return () => {}
    if (depth > DEPTH_MAX) throw tooDeep(lineOf(program))
    const parts = program.body.map((node) => this.statement(node, depth)).filter((part) => part !== null)
    if (parts.length === 1) return parts[0] as Part
    return (run, scope) => {
      for (const part of parts) part(run, scope)
    }
  }

  private statement(node: Ast, depth: number): Part | null {
    this.parts++
    switch (node.type) {
      case 'ContentStatement': {
        const { value } = node as hbs.AST.ContentStatement
        return value === '' ? null : (run) => run.write(value)
      }
      case 'CommentStatement':
        return null
      case 'MustacheStatement':
        return this.mustache(node as hbs.AST.MustacheStatement)
      case 'BlockStatement':
        return this.block(node as hbs.AST.BlockStatement, depth)
      case 'PartialStatement':
      case 'PartialBlockStatement':
        throw fault(node, 'partials are not supported')
      default:
        throw fault(node, 'decorators are not supported')
    }
  }

  private mustache(node: hbs.AST.MustacheStatement): Part {
    const path = pathOf(node.path)
    if (node.params.length > 0 || node.hash) throw fault(node, `unknown helper "${path.original}"`)
    if (isSimple(path) && isBlockName(path.original) && !this.isNamed(path)) {
      throw fault(node, `"${path.original}" is a block: write {{#${path.original} ...}}`)
    }
    const value = this.pathValue(path, true)
    const hole = `{{${path.original}}}`
    if (!this.escaped || !node.escaped)
      return (run, scope) => run.write(run.textOf(run.marked(value(run, scope), hole)))
    return (run, scope) => run.writeEscaped(run.textOf(run.marked(value(run, scope), hole)))
  }

  private block(node: hbs.AST.BlockStatement, depth: number): Part {
    const path = pathOf(node.path)
    const name = isSimple(path) && isBlockName(path.original) && !this.isNamed(path) ? path.original : null
    if (name === null && (node.params.length > 0 || node.hash))
      throw fault(node, `unknown helper "${path.original}"`)
    if (node.hash) throw fault(node, `"${path.original}" takes no named arguments`)
    const wanted = name === null ? 0 : (BLOCKS[name] as number)
    if (node.params.length !== wanted)
      throw fault(node, `"${path.original}" takes ${wanted} argument${wanted > 1 ? 's' : ''}`)
    const listed = name === 'each' || name === 'with'
    const names = (node.program ?? node.inverse).blockParams ?? []
    if (names.length > 0 && !listed)
      throw fault(node, `"as |${names.join(' ')}|" names values of "each" and "with" only`)
    const values =
      name === null ? [this.pathValue(path, false)] : node.params.map((param) => this.argument(param, listed))
    const main = this.naming(names, () => this.program(node.program, depth + 1))
    // `{{else if}}` nests each branch in the one before it; these are levels of the parser, not of the text.
    const chained = (node.inverse as { chained?: boolean } | undefined)?.chained === true
    const inverse = this.program(node.inverse, chained ? depth : depth + 1)
    const part = blockPart(name, values as [Value, ...Value[]], main, inverse, names.length > 0)
    return listed ? this.markedBlock(part, values[0] as Value, `{{#${name} ${lastPath(node)}}}`) : part
  }

  /** In its place the hole is written, if it is to be marked and what is entered is missing. */
  private markedBlock(part: Part, value: Value, hole: string): Part {
    return (run, scope) => {
      if (!run.isMarked || value(run, scope) !== undefined) part(run, scope)
      else if (this.escaped) run.writeEscaped(hole)
      else run.write(hole)
    }
  }

  private naming<T>(names: readonly string[], compile: () => T): T {
    const around = this.named
    if (names.length > 0) this.named = [names, ...around]
    try {
      return compile()
    } finally {
      this.named = around
    }
  }

  private isNamed({ parts, depth, data, original }: hbs.AST.PathExpression): boolean {
    const isPlain = !data && depth === 0 && !/^(?:this\b|\.)/.test(original)
    return isPlain && this.named.some((names) => names.includes(parts[0] as string))
  }

  private argument(node: Ast, listed: boolean): Value {
    switch (node.type) {
      case 'PathExpression':
        return this.pathValue(node as hbs.AST.PathExpression, listed)
      case 'SubExpression': {
        const { path } = node as hbs.AST.SubExpression
        throw fault(node, `unknown helper "${pathOf(path).original}"`)
      }
      case 'UndefinedLiteral':
        return () => undefined
      case 'NullLiteral':
        return () => null
      default: {
        const { value } = node as hbs.AST.StringLiteral
        return () => value
      }
    }
  }

  private pathValue(path: hbs.AST.PathExpression, reported: boolean): Value {
    const { parts, depth, original } = path
    const isNamed = this.isNamed(path)
    const start = path.data
      ? dataValue(path)
      : isNamed
        ? this.namedValue(parts[0] as string)
        : contextValue(depth)
    const rest = path.data || isNamed ? parts.slice(1) : parts
    return (run, scope) => {
      let value = start(run, scope)
      for (const part of rest) value = ownProperty(value, part)
      if (value === undefined && reported) run.missed(original)
      return value
    }
  }

  private namedValue(name: string): Value {
    const up = this.named.findIndex((names) => names.includes(name))
    const index = (this.named[up] as readonly string[]).indexOf(name)
    return (_run, scope) => {
      let at = scope.named
      for (let left = up; at && left > 0; left--) at = at.outer
      return at?.values[index]
    }
  }
}

/** `name` null: a block on a value. `names`: the block names what it enters. */
function blockPart(
  name: string | null,
  values: [Value, ...Value[]],
  main: Part,
  inverse: Part,
  names: boolean,
): Part {
  const [value, other] = values
  switch (name) {
    case 'if':
      return (run, scope) => (isTrue(value(run, scope)) ? main : inverse)(run.step(), scope)
    case 'unless':
      return (run, scope) => (isTrue(value(run, scope)) ? inverse : main)(run.step(), scope)
    case 'equal':
      return (run, scope) => {
        const same = run.textOf(value(run, scope)) === run.textOf(other?.(run, scope))
        ;(same ? main : inverse)(run.step(), scope)
      }
    case 'with':
      return (run, scope) => {
        const context = value(run, scope)
        if (isEmpty(context)) inverse(run.step(), scope)
        else main(run.step(), within(scope, context, scope.loop, names ? [context] : null))
      }
    case 'each':
      return eachPart(value, main, inverse, names)
    default:
      return sectionPart(value, main, inverse)
  }
}

/** `{{#name}}`: lists are repeated, true and what is not there change nothing about the context, all else is entered. */
function sectionPart(value: Value, main: Part, inverse: Part): Part {
  const repeated = eachPart(value, main, inverse, false)
  return (run, scope) => {
    const context = value(run, scope)
    if (Array.isArray(context)) repeated(run, scope)
    else if (context === true) main(run.step(), scope)
    else if (context === false || context === null || context === undefined) inverse(run.step(), scope)
    else main(run.step(), within(scope, context, scope.loop, null))
  }
}

/** Lists by position, objects by key in their order; anything else has no items. */
function eachPart(value: Value, main: Part, inverse: Part, names: boolean): Part {
  return (run, scope) => {
    const list = value(run, scope)
    if (typeof list !== 'object' || list === null) return inverse(run.step(), scope)
    const keys = Array.isArray(list) ? null : Object.keys(list)
    const count = keys ? keys.length : (list as unknown[]).length
    if (count === 0) return inverse(run.step(), scope)
    const loop: Loop = { key: 0, index: 0, first: true, last: false, outer: scope.loop }
    for (let index = 0; index < count; index++) {
      const key = keys ? (keys[index] as string) : index
      loop.key = key
      loop.index = index
      loop.first = index === 0
      loop.last = index === count - 1
      const item = (list as Record<string | number, unknown>)[key]
      main(run.step(), within(scope, item, loop, names ? [item, key] : null))
    }
  }
}

/** A block that changes nothing about the context adds no level for `../`. */
function within(scope: Scope, context: unknown, loop: Loop | null, values: readonly unknown[] | null): Scope {
  const named = values === null ? scope.named : { values, outer: scope.named }
  return { context, outer: context === scope.context ? scope.outer : scope, loop, named }
}

/** Missing, null, 0, "", [] and the text "false" are false (templates.md rule 23). */
function isTrue(value: unknown): boolean {
  return value !== 0 && value !== 'false' && !isEmpty(value)
}

function isEmpty(value: unknown): boolean {
  return (!value && value !== 0) || (Array.isArray(value) && value.length === 0)
}

/** A literal in the place of a name is one: `{{"a b"}}`, `{{12}}`. */
export function pathOf(node: Ast): hbs.AST.PathExpression {
  if (node.type === 'PathExpression') return node as hbs.AST.PathExpression
  const original = String((node as { original?: unknown }).original)
  return { type: 'PathExpression', data: false, depth: 0, parts: [original], original, loc: node.loc }
}

/** A bare word, which Handlebars would read as a helper: not `this.x`, `./x`, `../x`, `@x`. */
function isSimple({ parts, depth, data, original }: hbs.AST.PathExpression): boolean {
  return !data && depth === 0 && parts.length === 1 && original === parts[0]
}

function contextValue(depth: number): Value {
  if (depth === 0) return (_run, scope) => scope.context
  return (_run, scope) => {
    let at: Scope | null = scope
    for (let up = depth; at && up > 0; up--) at = at.outer
    return at?.context
  }
}

/** `@root`, and the position in the nearest `each` block (`@../index`: in the one around it). */
function dataValue(path: hbs.AST.PathExpression): Value {
  const { parts, depth } = path
  if (parts[0] === 'root') return (run) => run.root
  const name = LOOP_NAMES.find((known) => known === parts[0])
  if (name === undefined) throw fault(path, `unknown data name "${path.original}"`)
  return (_run, scope) => {
    let loop = scope.loop
    for (let up = depth; loop && up > 0; up--) loop = loop.outer
    return loop?.[name]
  }
}

/** Never of a prototype: variables are JSON data, in which `constructor` and `__proto__` are plain names. */
function ownProperty(value: unknown, name: string): unknown {
  if (value === null || value === undefined) return undefined
  return Object.hasOwn(value as object, name) ? (value as Record<string, unknown>)[name] : undefined
}

/** One rendering: what it has written, and what it has used up. */
class Run {
  readonly root: unknown
  private readonly missing: Set<string> | null
  readonly isMarked: boolean
  private readonly joined: string[] = []
  private pieces: string[] = []
  private length = 0
  private steps = 0
  /** Set at the first check: most renderings end before it. */
  private stopAtCpuMs = 0

  constructor(root: unknown, missing: Set<string> | null, isMarked: boolean) {
    this.root = root
    this.missing = missing
    this.isMarked = isMarked
  }

  /** Counts one step of work. @throws LimitReached when the time is used up */
  step(): this {
    this.steps++
    if (this.steps % STEPS_BETWEEN_LOOKS === 0) this.lookAtTime()
    return this
  }

  /** @throws LimitReached when the output becomes too long */
  write(text: string): void {
    this.room(text.length)
    this.length += text.length
    this.pieces.push(text)
    if (this.pieces.length === PIECES_JOINED) {
      this.joined.push(this.pieces.join(''))
      this.pieces = []
    }
    this.step()
  }

  writeEscaped(text: string): void {
    this.room(text.length)
    for (let at = 0; at < text.length; at += ESCAPED_AT_ONCE) {
      const piece = text.length <= ESCAPED_AT_ONCE ? text : text.slice(at, at + ESCAPED_AT_ONCE)
      this.write(Handlebars.Utils.escapeExpression(piece))
    }
  }

  /** A value as it is written: lists with commas, objects by the name of their kind, as Handlebars does. */
  textOf(value: unknown): string {
    if (typeof value === 'string') return value
    if (value === null || value === undefined) return ''
    if (typeof value !== 'object') return String(value)
    return Array.isArray(value) ? this.listText(value, 1) : '[object Object]'
  }

  /** The value, or the hole that a missing one leaves in a marked preview. */
  marked(value: unknown, hole: string): unknown {
    return value === undefined && this.isMarked ? hole : value
  }

  missed(name: string): void {
    if (this.missing && this.missing.size < MISSING_MAX) this.missing.add(name)
  }

  result(): string {
    const text = this.joined.length === 0 ? this.pieces.join('') : [...this.joined, ...this.pieces].join('')
    if (this.length * 3 > OUTPUT_BYTES_MAX && Buffer.byteLength(text) > OUTPUT_BYTES_MAX) {
      throw new LimitReached('output')
    }
    return text
  }

  private listText(list: readonly unknown[], depth: number): string {
    if (depth > DEPTH_MAX) throw new LimitReached('depth')
    const texts: string[] = []
    let length = 0
    for (const item of list) {
      const text = Array.isArray(item) ? this.listText(item, depth + 1) : this.textOf(item)
      length += text.length + 1
      this.room(length - 1)
      texts.push(text)
      this.step()
    }
    return texts.join(',')
  }

  /** A character has at least one byte. */
  private room(length: number): void {
    if (this.length + length > OUTPUT_BYTES_MAX) throw new LimitReached('output')
  }

  private lookAtTime(): void {
    const { user, system } = process.threadCpuUsage()
    const usedMs = (user + system) / 1000
    if (this.stopAtCpuMs === 0) this.stopAtCpuMs = usedMs + RENDER_CPU_MS_MAX
    else if (usedMs > this.stopAtCpuMs) throw new LimitReached('time')
  }
}

const lineOf = (node: Ast) => node.loc?.start.line ?? null

function fault(node: Ast, why: string): TemplateFault {
  return new TemplateFault(lineOf(node), why)
}
