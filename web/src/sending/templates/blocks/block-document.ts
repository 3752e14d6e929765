/**
 * A template as blocks. The MJML source stays the truth: `readBlocks` cuts it into pieces that `writeBlocks` joins again, and a
 * change replaces its own piece only. Whatever has no form of its own is a block `source`.
 *
 *     <mj-section>                 a row
 *       <mj-column>                a column of it
 *         <mj-text>...</mj-text>   an item: text, button, image, divider, spacer, or source
 */
import { attributeOf, type Piece, piecesOf, withAttribute } from './mjml-source.ts'

export type ItemKind = 'text' | 'button' | 'image' | 'divider' | 'spacer'

export interface Item {
  kind: ItemKind | 'source'
  /** White space. */
  before: string
  /** Empty for `source`, all of which is in `content`. */
  open: string
  content: string
  close: string
}

export interface Column {
  before: string
  open: string
  items: readonly Item[]
  /** White space after the last item. */
  tail: string
  close: string
}

export interface Row {
  kind: 'row'
  before: string
  open: string
  columns: readonly Column[]
  tail: string
  close: string
  /** What repeats the row for each item of a list: everything around its section. */
  repeat: { open: string; close: string } | null
}

/** MJML of the body that is no row. */
export interface SourceBlock {
  kind: 'source'
  before: string
  content: string
}

export type Block = Row | SourceBlock

export interface BlockDocument {
  /** All up to the body's tag. */
  head: string
  /** The body's tag. */
  body: string
  blocks: readonly Block[]
  tail: string
  /** From the body's end on. */
  rest: string
}

/** Where a block is: its number, or those of row, column and item. */
export type Place = readonly [block: number] | readonly [block: number, column: number, item: number]

const KINDS: Readonly<Record<string, ItemKind>> = {
  'mj-text': 'text',
  'mj-button': 'button',
  'mj-image': 'image',
  'mj-divider': 'divider',
  'mj-spacer': 'spacer',
}
const EACH = /^\s*\{\{#each ([^{}|]+?)\s*\}\}\s*$/
const EACH_END = /^\s*\{\{\/each\s*\}\}\s*$/

/** Null: the source has no body that blocks could be in. */
export function readBlocks(source: string): BlockDocument | null {
  const root = piecesOf(source, 0, source.length).pieces.find(({ tag }) => tag === 'mjml')
  if (root === undefined || root.close === '') return null
  const start = root.at + root.open.length
  const body = piecesOf(source, start, start + root.content.length).pieces.find(
    ({ tag }) => tag === 'mj-body',
  )
  if (body === undefined || body.close === '') return null
  const inner = body.at + body.open.length
  const end = inner + body.content.length
  return {
    head: source.slice(0, body.at),
    body: body.open,
    ...blocksIn(source, inner, end),
    rest: source.slice(end),
  }
}

/** Blocks of MJML as it stands in a body. */
export const blocksOf = (source: string) => blocksIn(source, 0, source.length).blocks

function blocksIn(source: string, start: number, end: number): Pick<BlockDocument, 'blocks' | 'tail'> {
  const { pieces, tail } = piecesOf(source, start, end)
  const blocks: Block[] = []
  for (let index = 0; index < pieces.length; index++) {
    const [piece, next, last] = pieces.slice(index, index + 3) as [Piece, Piece?, Piece?]
    const repeated = next && last && isRaw(piece, EACH) && isRaw(last, EACH_END) ? rowOf(source, next) : null
    if (repeated && last) {
      const repeat = { open: textOf(piece) + repeated.before, close: last.before + textOf(last) }
      blocks.push({ ...repeated, before: piece.before, repeat })
      index += 2
    } else
      blocks.push(rowOf(source, piece) ?? { kind: 'source', before: piece.before, content: textOf(piece) })
  }
  return { blocks, tail }
}

const textOf = ({ open, content, close }: Piece) => open + content + close
const isRaw = ({ tag, content }: Piece, pattern: RegExp) => tag === 'mj-raw' && pattern.test(content)

/** Null: no section, or one with more than columns. */
function rowOf(source: string, piece: Piece): Row | null {
  if (piece.tag !== 'mj-section' || piece.close === '') return null
  const start = piece.at + piece.open.length
  const { pieces, tail } = piecesOf(source, start, start + piece.content.length)
  if (pieces.length === 0 || pieces.some(({ tag }) => tag !== 'mj-column')) return null
  const { before, open, close } = piece
  const columns = pieces.map((column) => columnOf(source, column))
  return { kind: 'row', before, open, columns, tail, close, repeat: null }
}

function columnOf(source: string, { at, before, open, content, close }: Piece): Column {
  const start = at + open.length
  const { pieces, tail } = piecesOf(source, start, start + content.length)
  return { before, open, items: pieces.map(itemOf), tail, close }
}

function itemOf(piece: Piece): Item {
  const kind = KINDS[piece.tag]
  const { before, open, content, close } = piece
  if (kind === undefined)
    return { kind: 'source', before, open: '', content: open + content + close, close: '' }
  return { kind, before, open, content, close }
}

export const writeBlocks = ({ head, body, blocks, tail, rest }: BlockDocument) =>
  head + body + blocks.map(blockSource).join('') + tail + rest

export function blockSource(block: Block): string {
  if (block.kind === 'source') return block.before + block.content
  const { before, open, columns, tail, close, repeat } = block
  const inner = columns.map((column) => column.before + columnSource(column)).join('')
  return before + (repeat?.open ?? '') + open + inner + tail + close + (repeat?.close ?? '')
}

const columnSource = ({ open, items, tail, close }: Column) =>
  open + items.map((item) => item.before + itemSource(item)).join('') + tail + close

export const itemSource = ({ open, content, close }: Item) => open + content + close

/** The block or item there. */
export function at(doc: BlockDocument, place: Place): Block | Item | undefined {
  const block = doc.blocks[place[0]]
  if (place.length === 1) return block
  return block?.kind === 'row' ? block.columns[place[1]]?.items[place[2]] : undefined
}

const itemsAt = (doc: BlockDocument, block: number, column: number): readonly Item[] => {
  const row = doc.blocks[block]
  return (row?.kind === 'row' && row.columns[column]?.items) || []
}

/** The document with other items in one column. */
function withItems(doc: BlockDocument, block: number, column: number, items: readonly Item[]): BlockDocument {
  const change = (old: Column): Column =>
    old.close === '' && items.length > 0
      ? { ...old, open: old.open.replace(/\s*\/>$/, '>'), items, close: '</mj-column>' }
      : { ...old, items }
  return replaceRow(doc, block, (row) => ({
    ...row,
    columns: row.columns.map((old, index) => (index === column ? change(old) : old)),
  }))
}

export function replaceRow(doc: BlockDocument, block: number, change: (row: Row) => Row): BlockDocument {
  const replaced = doc.blocks.map((old, index) => (index === block && old.kind === 'row' ? change(old) : old))
  return { ...doc, blocks: replaced }
}

export function replaceItem(doc: BlockDocument, place: Place, item: Item): BlockDocument {
  if (place.length === 1) return doc
  const [block, column, index] = place
  return withItems(doc, block, column, itemsAt(doc, block, column).with(index, item))
}

/** Puts it before what is at the place; indented like what is around it. */
export function insert(doc: BlockDocument, place: Place, added: Block | Item): BlockDocument {
  if (place.length === 1) {
    const { blocks } = doc
    const block = { ...(added as Block), before: indent(blocks, '\n    ') }
    return { ...doc, blocks: blocks.toSpliced(place[0], 0, block) }
  }
  const [block, column, index] = place
  const items = itemsAt(doc, block, column)
  const item = { ...(added as Item), before: indent(items, '\n        ') }
  return withItems(doc, block, column, items.toSpliced(index, 0, item))
}

const indent = (siblings: readonly { before: string }[], usual: string) =>
  siblings.map(({ before }) => before).find((before) => before.includes('\n')) ?? usual

export function remove(doc: BlockDocument, place: Place): BlockDocument {
  if (place.length === 1) return { ...doc, blocks: doc.blocks.toSpliced(place[0], 1) }
  const [block, column, index] = place
  return withItems(doc, block, column, itemsAt(doc, block, column).toSpliced(index, 1))
}

/** Takes it away and puts it before what is at `to`. Both places are those before the change. Returns its new one. */
export function move(doc: BlockDocument, from: Place, to: Place): { doc: BlockDocument; place: Place } {
  const moved = at(doc, from)
  if (moved === undefined || from.length !== to.length) return { doc, place: from }
  const isSameList = from.length === 1 || (from[0] === to[0] && from[1] === to[1])
  const [first, last] = [from.at(-1) ?? 0, to.at(-1) ?? 0]
  const index = isSameList && first < last ? last - 1 : last
  const place: Place = to.length === 1 ? [index] : [to[0], to[1], index]
  const without = remove(doc, from)
  const there = insert(without, place, moved)
  return { doc: keepBefore(there, place, moved), place }
}

/** A moved block has the white space before it that it had. */
function keepBefore(doc: BlockDocument, place: Place, { before }: { before: string }): BlockDocument {
  if (place.length === 1)
    return {
      ...doc,
      blocks: doc.blocks.map((block, index) => (index === place[0] ? { ...block, before } : block)),
    }
  const item = at(doc, place) as Item
  return replaceItem(doc, place, { ...item, before })
}

/** One step up (-1) or down (1): an item at the end of its column goes on into the next one. Null: there is none. */
export function step(doc: BlockDocument, from: Place, by: -1 | 1): Place | null {
  if (from.length === 1) {
    const to = from[0] + by
    return to < 0 || to >= doc.blocks.length ? null : [by === 1 ? to + 1 : to]
  }
  const [block, column, index] = from
  const inList = index + by
  if (inList >= 0 && inList < itemsAt(doc, block, column).length)
    return [block, column, by === 1 ? inList + 1 : inList]
  const columns = columnsOf(doc)
  const here = columns.findIndex(([row, each]) => row === block && each === column)
  const next = columns[here + by]
  return next === undefined ? null : [...next, by === 1 ? 0 : itemsAt(doc, ...next).length]
}

/** Row and number of every column. */
export const columnsOf = (doc: BlockDocument): [block: number, column: number][] =>
  doc.blocks.flatMap((block, row) =>
    block.kind === 'row' ? block.columns.map((_, column): [number, number] => [row, column]) : [],
  )

/** Adds empty columns, or moves the items of those that go into the last one that stays. */
export function withColumns(row: Row, count: number): Row {
  const { columns } = row
  if (count >= columns.length) {
    const last = columns.at(-1)
    const added = Array.from({ length: count - columns.length }, () => ({
      ...{
        before: last?.before ?? '',
        open: '<mj-column>',
        items: [],
        tail: last?.tail ?? '',
        close: '</mj-column>',
      },
    }))
    return { ...row, columns: [...columns, ...added] }
  }
  const stays = columns.slice(0, count)
  const items = columns.slice(count - 1).flatMap((column) => column.items)
  const last = stays.at(-1) as Column
  const close = last.close === '' && items.length > 0 ? '</mj-column>' : last.close
  const open = close === last.close ? last.open : last.open.replace(/\s*\/>$/, '>')
  return { ...row, columns: [...stays.slice(0, -1), { ...last, open, items, close }] }
}

/** The list that a row is repeated for; '': it is not. */
export const repeatedList = ({ repeat }: Row) => {
  const [raw] = repeat ? piecesOf(repeat.open, 0, repeat.open.length).pieces : []
  return EACH.exec(raw?.content ?? '')?.[1] ?? ''
}

export function withRepeat(row: Row, list: string): Row {
  if (list === '') return { ...row, repeat: null }
  const gap = row.before.includes('\n') ? row.before : '\n    '
  const [open, close] = [`<mj-raw>{{#each ${list}}}</mj-raw>${gap}`, `${gap}<mj-raw>{{/each}}</mj-raw>`]
  return { ...row, repeat: { open, close } }
}

/** The item with that content; an element without an end tag gets one. */
export function withContent(item: Item, content: string): Item {
  if (item.close !== '' || item.kind === 'source') return { ...item, content }
  const open = item.open.replace(/\s*\/>$/, '>')
  return { ...item, open, content, close: `</mj-${item.kind}>` }
}

/** Colours and font of the whole template. */
export const THEME = {
  background: { of: 'mj-body', attribute: 'background-color' },
  width: { of: 'mj-body', attribute: 'width' },
  font: { of: 'mj-all', attribute: 'font-family' },
  text: { of: 'mj-text', attribute: 'color' },
  button: { of: 'mj-button', attribute: 'background-color' },
} as const
export type ThemeName = keyof typeof THEME

export function themeValue(doc: BlockDocument, name: ThemeName): string {
  const { of, attribute } = THEME[name]
  return attributeOf(of === 'mj-body' ? doc.body : (defaultsOf(doc.head, of).tag?.open ?? ''), attribute)
}

export function withTheme(doc: BlockDocument, name: ThemeName, value: string): BlockDocument {
  const { of, attribute } = THEME[name]
  if (of === 'mj-body') return { ...doc, body: withAttribute(doc.body, attribute, value) }
  const { tag, defaults, head, root } = defaultsOf(doc.head, of)
  const put = (at: number, length: number, text: string) => ({
    ...doc,
    head: doc.head.slice(0, at) + text + doc.head.slice(at + length),
  })
  if (tag) return put(tag.at, tag.open.length, withAttribute(tag.open, attribute, value))
  if (value === '') return doc
  const line = `\n      ${withAttribute(`<${of} />`, attribute, value)}`
  if (defaults && defaults.close !== '') return put(defaults.at + defaults.open.length, 0, line)
  const group = `\n    <mj-attributes>${line}\n    </mj-attributes>`
  if (head && head.close !== '') return put(head.at + head.open.length, 0, group)
  return put(root, 0, `\n  <mj-head>${group}\n  </mj-head>`)
}

/** The element of `mj-attributes` with that name, and those around it, as far as there are any. */
function defaultsOf(text: string, name: string) {
  // The root's tag is closed after the body: its content here is what follows its tag.
  const start =
    (/<mjml(?=[\s>])(?:[^>"']|"[^"]*"|'[^']*')*>/.exec(text)?.[0].length ?? 0) + text.search(/<mjml(?=[\s>])/)
  const inside = (piece: Piece | undefined) => {
    if (piece === undefined) return []
    const from = piece.at + piece.open.length
    return piecesOf(text, from, from + piece.content.length).pieces
  }
  const head = piecesOf(text, start, text.length).pieces.find(({ tag }) => tag === 'mj-head')
  const defaults = inside(head).find(({ tag }) => tag === 'mj-attributes')
  return { head, defaults, tag: inside(defaults).find(({ tag }) => tag === name), root: start }
}
