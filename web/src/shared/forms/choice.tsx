import { SegmentedControl } from '@mantine/core'

/** One of a few values, side by side. */
export function Choice<Value extends string>(props: {
  label: string
  options: readonly (readonly [Value, string])[]
  value: Value
  onChange: (value: Value) => void
  size?: 'xs' | 'sm'
}) {
  const { label, options, value, onChange, size = 'sm' } = props
  return (
    <SegmentedControl
      size={size}
      aria-label={label}
      value={value}
      data={options.map(([each, words]) => ({ value: each, label: words }))}
      onChange={(chosen) => {
        const option = options.find(([each]) => each === chosen)
        if (option) onChange(option[0])
      }}
    />
  )
}
