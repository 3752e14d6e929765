/** The sample of a version as fields, one for each place of a variable; those without a value are marked. */
import { Button, NativeSelect, Textarea, TextInput } from '@mantine/core'
import { Panel } from '../../shared/page/page.tsx'
import {
  isHole,
  type Place,
  placesOf,
  readSample,
  type Sample,
  sampleText,
  withExamples,
  withValue,
} from './sample.ts'
import type { Rendered } from './templates-api.ts'
import { TEXT } from './text.ts'

export function SampleFields(props: {
  variables: Rendered['variables']
  /** JSON as it is typed. */
  text: string
  onChange: (text: string) => void
}) {
  const { variables, text, onChange } = props
  const read = readSample(text)
  const sample = 'value' in read ? read.value : undefined
  const places = sample ? placesOf(variables, sample) : []
  const holes = places.filter(isHole)
  const change = (changed: Sample) => onChange(sampleText(changed))
  return (
    <Panel title={TEXT.sample}>
      <p className="dimmed sample-lead">{TEXT.sampleWhy}</p>
      {sample && holes.length > 0 && (
        <div className="preview-missing" role="status">
          <span>{TEXT.missing}:</span>
          {holes.map(({ name }) => (
            <code key={name} className="tag">
              {name}
            </code>
          ))}
          <Button size="compact-xs" variant="light" onClick={() => change(withExamples(sample, places))}>
            {TEXT.addMissing}
          </Button>
        </div>
      )}
      {sample && places.length > 0 && (
        <div className="sample-fields">
          {places.map((place) => (
            <Field
              key={place.name}
              place={place}
              onChange={(value) => change(withValue(sample, place.path, value))}
            />
          ))}
        </div>
      )}
      <Textarea
        label={TEXT.variables}
        className="code-area"
        size="sm"
        mt="sm"
        autosize={false}
        rows={5}
        spellCheck={false}
        value={text}
        error={'fault' in read ? read.fault : undefined}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </Panel>
  )
}

interface FieldProps {
  place: Place
  /** Undefined: no value. */
  onChange: (value: unknown) => void
}

function Field({ place, onChange }: FieldProps) {
  const { name, kind, value } = place
  const common = { label: <code className="breakable">{name}</code>, size: 'sm' } as const
  const hole = isHole(place) && { description: TEXT.noValue, 'data-hole': true }
  if (kind === 'list' && (value === undefined || Array.isArray(value)))
    return <ListField {...common} {...hole} list={value ?? []} name={name} onChange={onChange} />
  if (kind === 'condition' && (value === undefined || typeof value === 'boolean'))
    return (
      <NativeSelect
        {...common}
        {...hole}
        className="sample-field"
        value={value === undefined ? '' : String(value)}
        data={[
          { value: '', label: TEXT.noValue },
          { value: 'true', label: TEXT.yes },
          { value: 'false', label: TEXT.no },
        ]}
        onChange={({ currentTarget: { value: chosen } }) =>
          onChange(chosen === '' ? undefined : chosen === 'true')
        }
      />
    )
  if (typeof value === 'object' && value !== null) return null // its text has it
  return (
    <TextInput
      {...common}
      {...hole}
      className="sample-field"
      autoComplete="off"
      value={value === undefined || value === null ? '' : String(value)}
      onChange={({ currentTarget: { value: typed } }) => onChange(typed === '' ? undefined : typed)}
    />
  )
}

function ListField(props: {
  name: string
  list: readonly unknown[]
  'data-hole'?: boolean
  onChange: (list: unknown[] | undefined) => void
}) {
  const { name, list, onChange } = props
  return (
    <div className="sample-field sample-list" data-hole={props['data-hole']}>
      <code className="breakable">{name}</code>
      <span className="dimmed">{list.length === 0 ? TEXT.noValue : TEXT.items(list.length)}</span>
      <span className="grow" />
      <Button
        size="compact-xs"
        variant="default"
        aria-label={TEXT.addItemTo(name)}
        onClick={() => onChange([...list, {}])}
      >
        {TEXT.addItem}
      </Button>
      {list.length > 0 && (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={TEXT.removeItemOf(name)}
          onClick={() => onChange(list.length > 1 ? list.slice(0, -1) : undefined)}
        >
          {TEXT.removeItem}
        </Button>
      )}
    </div>
  )
}
