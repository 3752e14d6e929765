/**
 * A template as a list of blocks with forms. The source is the state: blocks are read from it, and each change is written into it.
 * Blocks move by buttons, which say where the block is then, and by the pointer.
 */
import { ActionIcon, Alert, Button } from '@mantine/core'
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { Icon } from '../../../look/icons.tsx'
import type { ContentHistory } from '../content-history.ts'
import type { Rendered } from '../templates-api.ts'
import {
  at,
  type Block,
  type BlockDocument,
  type Column,
  type Item,
  type ItemKind,
  insert,
  move,
  type Place,
  type Row,
  readBlocks,
  remove,
  repeatedList,
  replaceItem,
  replaceRow,
  step,
  writeBlocks,
} from './block-document.ts'
import { ItemForm, RowForm, SourceField, ThemeForm } from './block-form.tsx'
import { TEXT } from './block-text.ts'
import { placeKey, useDrag } from './drag.ts'
import { attributeOf } from './mjml-source.ts'
import { EMPTY_DOCUMENT, newItem, newRow, type RowName, rowWith } from './presets.ts'
import './blocks.css'

interface BlockEditorProps {
  content: string
  history: ContentHistory
  /** What the template uses, and its lists: offered where a variable can be inserted. */
  variables: Rendered['variables']
  disabled: boolean
}

const ITEM_KINDS: readonly ItemKind[] = ['text', 'button', 'image', 'divider', 'spacer']

export default function BlockEditor(props: BlockEditorProps) {
  const { content, history, disabled } = props
  const doc = useMemo(() => readBlocks(content), [content])
  if (doc !== null) return <Editor {...props} doc={doc} />
  return (
    <Alert color="gray" title={TEXT.noBody}>
      <p>{TEXT.noBodyWhy}</p>
      <div className="block-bar">
        {!disabled && (
          <Button size="sm" onClick={() => history.change(EMPTY_DOCUMENT, 'start')}>
            {TEXT.start}
          </Button>
        )}
        <HistoryButtons history={history} say={() => {}} />
      </div>
    </Alert>
  )
}

/** What the focus goes to after a change: a button of a block, or its first field. */
type Aim = { place: Place; part: 'up' | 'down' | 'toggle' | 'field' } | 'palette'

const SELECTORS = {
  up: '> .block-head > .block-up',
  down: '> .block-head > .block-down',
  toggle: '> .block-head > .block-toggle',
  field: '> .block-open :is(textarea, input, select)',
}

/** Runs after the next rendering, when what it aims at is there. */
function useFocus() {
  const list = useRef<HTMLElement>(null)
  const aim = useRef<Aim>(undefined)
  useEffect(() => {
    const { current } = aim
    if (current === undefined) return
    aim.current = undefined
    if (current === 'palette')
      return list.current?.querySelector<HTMLElement>('.block-palette button')?.focus()
    const block = `[data-block="${placeKey(current.place)}"]`
    const find = (part: keyof typeof SELECTORS) =>
      list.current?.querySelector<HTMLElement>(`${block} ${SELECTORS[part]}:not(:disabled)`)
    ;(find(current.part) ?? find('toggle'))?.focus()
  })
  return { list, focus: (to: Aim) => (aim.current = to) }
}

function Editor({ doc, history, variables, disabled }: BlockEditorProps & { doc: BlockDocument }) {
  const [open, setOpen] = useState<Place>()
  const [said, setSaid] = useState('')
  const { list, focus } = useFocus()
  const opened = open && at(doc, open) ? open : undefined
  const write = (changed: BlockDocument, name: string) => history.change(writeBlocks(changed), name)
  /** The source may be read as other blocks than were put into it. */
  const read = (changed: BlockDocument) => readBlocks(writeBlocks(changed)) ?? changed

  const moveTo = (from: Place, to: Place, part: 'up' | 'down' | 'toggle') => {
    const moved = move(doc, from, to)
    if (placeKey(moved.place) === placeKey(from)) return
    write(moved.doc, '')
    const isOpen = opened !== undefined && placeKey(opened) === placeKey(from)
    setOpen(isOpen ? moved.place : undefined)
    setSaid(TEXT.moved(nameOf(at(doc, from)), placeText(moved.doc, moved.place)))
    focus({ place: moved.place, part })
  }
  const { drag, handle } = useDrag((from, to) => moveTo(from, to, 'toggle'))
  const add = (place: Place, added: Block | Item, name: string) => {
    const changed = read(insert(doc, place, added))
    write(changed, '')
    setOpen(place)
    setSaid(TEXT.added(name))
    focus({ place, part: 'field' })
  }
  const card: CardTools = {
    disabled,
    drag,
    handle,
    isOpen: (place) => opened !== undefined && placeKey(opened) === placeKey(place),
    toggle: (place) => setOpen(opened && placeKey(opened) === placeKey(place) ? undefined : place),
    step: (place, by) => {
      const to = step(doc, place, by)
      if (to) moveTo(place, to, by === -1 ? 'up' : 'down')
    },
    canStep: (place, by) => step(doc, place, by) !== null,
    remove(place) {
      write(remove(doc, place), '')
      setOpen(undefined)
      setSaid(TEXT.removed(nameOf(at(doc, place))))
      const before = place.with(-1, Math.max(0, (place.at(-1) ?? 0) - 1)) as unknown as Place
      focus(at(remove(doc, place), before) ? { place: before, part: 'toggle' } : 'palette')
    },
  }
  const say = (text: string) => {
    setOpen(undefined)
    setSaid(text)
  }
  const inside = namesFor(variables)
  return (
    <section ref={list} className="blocks" aria-label={TEXT.blocks} onKeyDown={undoKeys(history, setSaid)}>
      <div className="block-bar">
        <HistoryButtons history={history} say={say} />
      </div>
      <p className="visually-hidden" role="status">
        {said}
      </p>
      <details className="block-look">
        <summary>{TEXT.look}</summary>
        <fieldset disabled={disabled}>
          <ThemeForm value={doc} onChange={(changed, name) => write(changed, `theme ${name}`)} />
        </fieldset>
      </details>
      <ol className="block-list">
        {doc.blocks.map((block, index) => {
          const place: Place = [index]
          const names = inside(block.kind === 'row' ? repeatedList(block) : '')
          return (
            <Card key={placeKey(place)} place={place} name={nameOf(block)} tools={card}>
              {{
                form: <BlockForm {...{ doc, index, variables, write }} />,
                below: block.kind === 'row' && (
                  <Columns
                    row={block}
                    block={index}
                    tools={card}
                    form={(item, at) => (
                      <ItemForm
                        value={item}
                        variables={names}
                        onChange={(changed, name) =>
                          write(replaceItem(doc, at, changed), `${placeKey(at)} ${name}`)
                        }
                      />
                    )}
                  />
                ),
              }}
            </Card>
          )
        })}
      </ol>
      {!disabled && (
        <Palette
          after={opened && nameOf(at(doc, opened))}
          addItem={(kind) => {
            const place = placeForItem(doc, opened)
            if (place) add(place, newItem(kind), TEXT.kinds[kind])
            else {
              const end = doc.blocks.length
              const changed = insert(doc, [end], rowWith(kind))
              write(changed, '')
              setOpen([end, 0, 0])
              setSaid(TEXT.added(TEXT.kinds[kind]))
              focus({ place: [end, 0, 0], part: 'field' })
            }
          }}
          addRow={(name) => add(placeForRow(doc, opened, name), newRow(name), TEXT.rows[name])}
        />
      )}
    </section>
  )
}

/** Ctrl or Cmd with Z and Y, but in fields with a history of their own. */
function undoKeys(history: BlockEditorProps['history'], setSaid: (text: string) => void) {
  return (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || !/^[zy]$/i.test(event.key)) return
    if ((event.target as Element).closest('[data-own-undo]')) return
    event.preventDefault()
    const isRedo = event.shiftKey || /y/i.test(event.key)
    const act = isRedo ? history.redo : history.undo
    act?.()
    if (act) setSaid(isRedo ? TEXT.redone : TEXT.undone)
  }
}

interface BlockFormProps {
  doc: BlockDocument
  index: number
  variables: BlockEditorProps['variables']
  write: (changed: BlockDocument, name: string) => void
}

/** The form of a row, or the source of what is no block. */
function BlockForm({ doc, index, variables, write }: BlockFormProps) {
  const block = doc.blocks[index]
  if (block === undefined) return null
  return block.kind === 'row' ? (
    <RowForm
      value={block}
      lists={variables
        .filter(({ kind, path }) => kind === 'list' && !path.includes('[]'))
        .map(({ path }) => path.join('.'))}
      onChange={(row, name) =>
        write(
          replaceRow(doc, index, () => row),
          `${index} ${name}`,
        )
      }
    />
  ) : (
    <SourceField
      label={TEXT.source}
      description={TEXT.sourceHint}
      value={block.content}
      onDone={(source) =>
        write({ ...doc, blocks: doc.blocks.with(index, { ...block, content: source }) }, '')
      }
    />
  )
}

/** After the open block, else at the end of the last plain row. Undefined: it needs a row of its own. */
function placeForItem(doc: BlockDocument, open: Place | undefined): Place | undefined {
  if (open?.length === 3) return [open[0], open[1], open[2] + 1]
  const index = open?.[0] ?? doc.blocks.length - 1
  const row = doc.blocks[index]
  if (row?.kind !== 'row') return undefined
  const isPlain = row.columns.length === 1 && row.repeat === null && attributeOf(row.open, 'css-class') === ''
  if (open === undefined && !isPlain) return undefined
  return [index, 0, row.columns[0]?.items.length ?? 0]
}

function placeForRow(doc: BlockDocument, open: Place | undefined, name: RowName): Place {
  if (open) return [open[0] + 1]
  return [name === 'header' ? 0 : doc.blocks.length]
}

/** Names as they are written in a row: of the template, and of the items of the list that it is repeated for. */
const namesFor = (variables: Rendered['variables']) => (list: string) =>
  variables.flatMap(({ path, kind }) => {
    const [first, second, ...rest] = path
    if (kind !== 'text') return []
    if (!path.includes('[]')) return [list === '' ? path.join('.') : `../${path.join('.')}`]
    return first === list && second === '[]' && !rest.includes('[]') ? [rest.join('.') || 'this'] : []
  })

interface CardTools extends Pick<ReturnType<typeof useDrag>, 'drag' | 'handle'> {
  disabled: boolean
  isOpen: (place: Place) => boolean
  toggle: (place: Place) => void
  step: (place: Place, by: -1 | 1) => void
  canStep: (place: Place, by: -1 | 1) => boolean
  remove: (place: Place) => void
}

function Card(props: {
  place: Place
  name: string
  tools: CardTools
  children: { form: ReactNode; below?: ReactNode }
}) {
  const { place, name, tools, children } = props
  const key = placeKey(place)
  const isOpen = tools.isOpen(place)
  const over = tools.drag?.over === key && tools.drag.from !== key ? tools.drag.side : undefined
  return (
    <li
      className={place.length === 1 ? 'block block-row' : 'block'}
      data-block={key}
      data-over={over}
      data-dragged={tools.drag?.from === key || undefined}
    >
      <div className="block-head">
        {!tools.disabled && (
          <span className="block-handle" title={TEXT.drag} aria-hidden="true" {...tools.handle(place)}>
            <Icon name="menu" size={14} />
          </span>
        )}
        <button
          type="button"
          className="block-toggle"
          aria-expanded={isOpen}
          onClick={() => tools.toggle(place)}
        >
          <span className="ellipsis">{name}</span>
        </button>
        {!tools.disabled && (
          <>
            <HeadButton
              kind="up"
              label={TEXT.up(name)}
              disabled={!tools.canStep(place, -1)}
              onClick={() => tools.step(place, -1)}
            />
            <HeadButton
              kind="down"
              label={TEXT.down(name)}
              disabled={!tools.canStep(place, 1)}
              onClick={() => tools.step(place, 1)}
            />
            <HeadButton kind="remove" label={TEXT.remove(name)} onClick={() => tools.remove(place)} />
          </>
        )}
      </div>
      {isOpen && (
        <fieldset className="block-open" disabled={tools.disabled} aria-label={name}>
          {children.form}
        </fieldset>
      )}
      {children.below}
    </li>
  )
}

function HeadButton(props: {
  kind: 'up' | 'down' | 'remove'
  label: string
  disabled?: boolean
  onClick: () => void
}) {
  const { kind, label, disabled = false, onClick } = props
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="md"
      className={`block-${kind}`}
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={onClick}
    >
      {kind === 'remove' ? <Icon name="trash" size={15} /> : <Icon name="forward" size={15} />}
    </ActionIcon>
  )
}

function Columns(props: {
  row: Row
  block: number
  tools: CardTools
  form: (item: Item, place: Place) => ReactNode
}) {
  const { row, block, tools, form } = props
  return (
    <div className="block-columns">
      {row.columns.map((column: Column, at) => {
        const title = row.columns.length > 1 ? TEXT.column(at + 1, row.columns.length) : undefined
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a column is known by its number
          <div key={at}>
            {title && <p className="dimmed block-column">{title}</p>}
            <ol className="block-list" aria-label={title}>
              {column.items.map((item, index) => {
                const place: Place = [block, at, index]
                return (
                  <Card key={placeKey(place)} place={place} name={nameOf(item)} tools={tools}>
                    {{ form: form(item, place) }}
                  </Card>
                )
              })}
            </ol>
          </div>
        )
      })}
    </div>
  )
}

function HistoryButtons({ history, say }: { history: ContentHistory; say: (text: string) => void }) {
  const { undo, redo } = history
  const button = (label: string, act: (() => void) | undefined, done: string) => (
    <Button
      size="compact-sm"
      variant="default"
      disabled={act === undefined}
      onClick={() => {
        act?.()
        say(done)
      }}
    >
      {label}
    </Button>
  )
  return (
    <>
      {button(TEXT.undo, undo, TEXT.undone)}
      {button(TEXT.redo, redo, TEXT.redone)}
    </>
  )
}

function Palette(props: {
  after: string | undefined
  addItem: (kind: ItemKind) => void
  addRow: (name: RowName) => void
}) {
  const { after, addItem, addRow } = props
  return (
    <fieldset className="block-palette">
      <legend>{after === undefined ? TEXT.add : TEXT.addAfter(after)}</legend>
      {ITEM_KINDS.map((kind) => (
        <Button key={kind} size="compact-sm" variant="light" onClick={() => addItem(kind)}>
          {TEXT.kinds[kind]}
        </Button>
      ))}
      {(Object.entries(TEXT.rows) as [RowName, string][]).map(([name, label]) => (
        <Button key={name} size="compact-sm" variant="default" onClick={() => addRow(name)}>
          {label}
        </Button>
      ))}
    </fieldset>
  )
}

const NAME_CHARS_MAX = 60
const CLASSES: Readonly<Record<string, string>> = TEXT.rows

/** A few words that tell one block from another. */
function nameOf(block: Block | Item | undefined): string {
  if (block === undefined) return ''
  if (block.kind === 'row') return rowName(block)
  const words = wordsOf(block)
  return words === '' ? TEXT.kinds[block.kind] : `${TEXT.kinds[block.kind]}: ${words}`
}

function rowName(row: Row): string {
  const list = repeatedList(row)
  const kind = CLASSES[attributeOf(row.open, 'css-class')] ?? TEXT.row
  const inside = row.columns.flatMap(({ items }) => items.map((item) => TEXT.kinds[item.kind].toLowerCase()))
  const name = inside.length === 0 ? TEXT.emptyRow : `${kind}: ${inside.join(', ')}`
  return list === '' ? name : `${name} (${TEXT.repeats(list)})`
}

function wordsOf(block: Exclude<Block, Row> | Item): string {
  const isPicture = block.kind === 'image'
  const text = isPicture ? attributeOf(block.open, 'alt') || attributeOf(block.open, 'src') : block.content
  const words = block.kind === 'source' ? text : text.slice(0, 1_000).replaceAll(/<[^>]*>/g, ' ')
  const short = words.slice(0, 1_000).replaceAll(/\s+/g, ' ').trim()
  return short.length > NAME_CHARS_MAX ? `${short.slice(0, NAME_CHARS_MAX)}…` : short
}

function placeText(doc: BlockDocument, place: Place): string {
  if (place.length === 1) return TEXT.placeOf(place[0] + 1, doc.blocks.length)
  const [block, column, index] = place
  const row = doc.blocks[block] as Row
  const count = row.columns[column]?.items.length ?? 0
  return TEXT.placeIn(TEXT.placeOf(index + 1, count), block + 1, column + 1, row.columns.length)
}
