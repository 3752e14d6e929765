/** The forms of blocks: words, attributes, and a choice that inserts a variable where the cursor is. */
import { Button, NativeSelect, Textarea, TextInput } from '@mantine/core'
import { type FocusEvent, type ReactNode, useRef, useState } from 'react'
import {
  type BlockDocument,
  type Item,
  type ItemKind,
  type Row,
  repeatedList,
  THEME,
  type ThemeName,
  themeValue,
  withColumns,
  withContent,
  withRepeat,
  withTheme,
} from './block-document.ts'
import { TEXT } from './block-text.ts'
import { htmlOf, marksOf } from './marks.ts'
import { attributeOf, withAttribute } from './mjml-source.ts'

type FieldName = keyof typeof TEXT.fields

const FIELDS: Readonly<Record<ItemKind, readonly FieldName[]>> = {
  text: ['align', 'color', 'font-size'],
  button: ['href', 'background-color', 'color', 'align'],
  image: ['src', 'alt', 'href', 'width', 'align'],
  divider: ['border-color', 'border-width'],
  spacer: ['height'],
}
const COLUMNS_MAX = 4

/** `name` of what was changed: changes of one field are one step of the history. */
type Change<T> = (changed: T, name: string) => void

interface FormProps<T> {
  value: T
  onChange: Change<T>
}

export function ItemForm({
  value: item,
  onChange,
  variables,
}: FormProps<Item> & { variables: readonly string[] }) {
  if (item.kind === 'source')
    return (
      <SourceField
        label={TEXT.source}
        description={TEXT.sourceHint}
        value={item.content}
        onDone={(content) => onChange({ ...item, content }, 'source')}
      />
    )
  const setContent = (content: string) => onChange(withContent(item, content), 'content')
  return (
    <WithVariables variables={variables}>
      {item.kind === 'text' && <Words content={item.content} onChange={setContent} />}
      {item.kind === 'button' && (
        <TextInput
          label={TEXT.words}
          size="sm"
          autoComplete="off"
          value={marksOf(item.content) ?? item.content}
          onChange={(event) => setContent(htmlOf(event.currentTarget.value))}
        />
      )}
      <div className="block-fields">
        {FIELDS[item.kind].map((name) => (
          <Attribute
            key={name}
            name={name}
            label={TEXT.fields[name]}
            value={attributeOf(item.open, name)}
            onChange={(text) => onChange({ ...item, open: withAttribute(item.open, name, text) }, name)}
          />
        ))}
      </div>
    </WithVariables>
  )
}

export function RowForm({ value: row, onChange, lists }: FormProps<Row> & { lists: readonly string[] }) {
  const list = repeatedList(row)
  const name = 'background-color'
  return (
    <div className="block-fields">
      <NativeSelect
        label={TEXT.columns}
        size="sm"
        value={String(row.columns.length)}
        data={Array.from({ length: Math.max(COLUMNS_MAX, row.columns.length) }, (_, at) => String(at + 1))}
        onChange={(event) => onChange(withColumns(row, Number(event.currentTarget.value)), 'columns')}
      />
      <Attribute
        name={name}
        label={TEXT.fields[name]}
        value={attributeOf(row.open, name)}
        onChange={(text) => onChange({ ...row, open: withAttribute(row.open, name, text) }, name)}
      />
      <TypedField
        label={TEXT.repeat}
        description={TEXT.repeatHint}
        value={list}
        options={lists}
        onDone={(text) => onChange(withRepeat(row, text.replaceAll(/[^\p{L}\p{N}_.@/[\]-]/gu, '')), 'repeat')}
      />
    </div>
  )
}

const FONTS = [
  'Helvetica, Arial, sans-serif',
  'Verdana, Geneva, sans-serif',
  'Trebuchet MS, Helvetica, sans-serif',
  'Georgia, Times, serif',
  'Courier New, Courier, monospace',
]

/** Colours and font of the whole template. */
export function ThemeForm({ value: doc, onChange }: FormProps<BlockDocument>) {
  return (
    <div className="block-fields">
      {(Object.keys(THEME) as ThemeName[]).map((name) => {
        const value = themeValue(doc, name)
        const change = (text: string) => onChange(withTheme(doc, name, text), name)
        if (name !== 'font')
          return (
            <Attribute
              key={name}
              name={THEME[name].attribute}
              label={TEXT.theme[name]}
              value={value}
              onChange={change}
            />
          )
        const fonts = FONTS.includes(value) || value === '' ? FONTS : [value, ...FONTS]
        return (
          <NativeSelect
            key={name}
            label={TEXT.theme.font}
            size="sm"
            value={value}
            data={[
              { value: '', label: TEXT.usual },
              ...fonts.map((font) => ({ value: font, label: font.split(',')[0] ?? font })),
            ]}
            onChange={(event) => change(event.currentTarget.value)}
          />
        )
      })}
    </div>
  )
}

interface AttributeProps {
  name: string
  label: string
  value: string
  onChange: (text: string) => void
}

function Attribute({ name, label, value, onChange }: AttributeProps) {
  if (name === 'align')
    return (
      <NativeSelect
        label={label}
        size="sm"
        value={value}
        data={Object.entries(TEXT.aligns).map(([each, words]) => ({ value: each, label: words }))}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  const isColour = name.endsWith('color')
  const isLength = LENGTHS.has(name)
  return (
    <TextInput
      label={label}
      size="sm"
      autoComplete="off"
      spellCheck={name === 'alt'}
      value={isLength ? value.replace(/^(\d+)px$/, '$1') : value}
      {...(PLACEHOLDERS[name] && { placeholder: PLACEHOLDERS[name] })}
      {...(isColour && { rightSection: <Swatch label={label} value={value} onChange={onChange} /> })}
      onChange={({ currentTarget: { value: text } }) =>
        onChange(isLength && /^\d+$/.test(text) ? `${text}px` : text)
      }
    />
  )
}

/** A number alone is one of pixels. */
const LENGTHS: ReadonlySet<string> = new Set(['width', 'height', 'font-size', 'border-width'])
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  src: 'https://…',
  href: 'https://…',
  width: '120',
  height: '24',
  'font-size': '14',
  'border-width': '1',
}

function Swatch({ label, value, onChange }: Omit<AttributeProps, 'name'>) {
  return (
    <input
      type="color"
      className="block-swatch"
      aria-label={TEXT.pickColour(label)}
      value={/^#[\da-f]{6}$/i.test(value) ? value : '#ffffff'}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** The words of a text. What is typed stays as it is typed while it says what the block has. */
function Words({ content, onChange }: { content: string; onChange: (html: string) => void }) {
  const area = useRef<HTMLTextAreaElement>(null)
  const [typed, setTyped] = useState(() => marksOf(content))
  const shown = typed !== null && htmlOf(typed) === content ? typed : marksOf(content)
  if (shown === null)
    return (
      <Textarea
        label={TEXT.html}
        description={TEXT.htmlHint}
        className="code-area"
        size="sm"
        rows={6}
        spellCheck={false}
        value={content}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  const wrap = (before: string, after: string) => {
    const { current } = area
    if (current === null) return
    const [start, end] = [current.selectionStart, current.selectionEnd]
    typeInto(current, before + current.value.slice(start, end) + after)
    current.setSelectionRange(start + before.length, end + before.length)
  }
  return (
    <div>
      <div className="block-marks">
        {MARKS.map(([label, before, after]) => (
          <Button key={label} size="compact-xs" variant="default" onClick={() => wrap(before, after)}>
            {label}
          </Button>
        ))}
      </div>
      <Textarea
        ref={area}
        label={TEXT.words}
        description={TEXT.wordsHint}
        size="sm"
        rows={5}
        value={shown}
        onChange={(event) => {
          setTyped(event.currentTarget.value)
          onChange(htmlOf(event.currentTarget.value))
        }}
      />
    </div>
  )
}

const MARKS = [
  [TEXT.heading, '\n\n# ', '\n\n'],
  [TEXT.bold, '**', '**'],
  [TEXT.italic, '*', '*'],
  [TEXT.link, '[', '](https://)'],
] as const

/** Replaces what is selected, as typing would. */
function typeInto(field: HTMLInputElement | HTMLTextAreaElement, text: string): void {
  field.focus()
  field.setRangeText(
    text,
    field.selectionStart ?? field.value.length,
    field.selectionEnd ?? field.value.length,
    'end',
  )
  field.dispatchEvent(new Event('input', { bubbles: true }))
}

const isTextField = (target: EventTarget): target is HTMLInputElement | HTMLTextAreaElement =>
  target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === 'text')

/** A form whose text fields can be given a variable: the one that had the focus last. */
function WithVariables({ variables, children }: { variables: readonly string[]; children: ReactNode }) {
  const form = useRef<HTMLFieldSetElement>(null)
  const last = useRef<HTMLInputElement | HTMLTextAreaElement>(null)
  const noteField = ({ target }: FocusEvent) => {
    if (isTextField(target)) last.current = target
  }
  const insert = (text: string) => {
    const first = form.current?.querySelector<HTMLInputElement>(
      'textarea, input[type=text], input:not([type])',
    )
    const field = last.current?.isConnected ? last.current : first
    if (field && text !== '') typeInto(field, text)
  }
  return (
    <fieldset ref={form} onFocus={noteField} className="block-form">
      {children}
      <NativeSelect
        label={TEXT.insertVariable}
        size="sm"
        value=""
        data={[
          { value: '', label: TEXT.choose },
          ...variables.map((name) => ({ value: `{{${name}}}`, label: name })),
          { value: '%unsubscribe_url%', label: TEXT.unsubscribe },
        ]}
        onChange={(event) => insert(event.currentTarget.value)}
      />
    </fieldset>
  )
}

interface DoneProps {
  label: string
  description: string
  value: string
  onDone: (text: string) => void
}

/** Source is applied when the field is left: half of an element would be read as something else. */
export function SourceField({ label, description, value, onDone }: DoneProps) {
  const [typed, setTyped] = useState<string>()
  return (
    <Textarea
      label={label}
      description={description}
      className="code-area"
      size="sm"
      rows={6}
      spellCheck={false}
      data-own-undo
      value={typed ?? value}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={() => {
        setTyped(undefined)
        if (typed !== undefined && typed !== value) onDone(typed)
      }}
    />
  )
}

function TypedField({
  label,
  description,
  value,
  options,
  onDone,
}: DoneProps & { options: readonly string[] }) {
  const [typed, setTyped] = useState<string>()
  const done = () => {
    setTyped(undefined)
    if (typed !== undefined && typed !== value) onDone(typed.trim())
  }
  const list = `${label}-options`
  return (
    <>
      <TextInput
        label={label}
        description={description}
        size="sm"
        autoComplete="off"
        spellCheck={false}
        list={list}
        data-own-undo
        value={typed ?? value}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onBlur={done}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          event.preventDefault() // the form around would be saved without it
          done()
        }}
      />
      <datalist id={list}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </>
  )
}
