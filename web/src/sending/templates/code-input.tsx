import { Text } from '@mantine/core'
import { type ReactNode, useId, useRef } from 'react'

/** Source text with numbers of lines, which errors name. Tab leaves it, as in every other field. */
export function CodeInput(props: {
  label: string
  description?: string
  value: string
  onChange: (text: string) => void
  disabled?: boolean
  beside?: ReactNode
}) {
  const { label, description, value, onChange, disabled = false, beside } = props
  const id = useId()
  const gutter = useRef<HTMLPreElement>(null)
  const lines = value.split('\n').length
  return (
    <div className="code-input">
      <div className="code-input-head">
        <label htmlFor={id}>{label}</label>
        <span className="grow" />
        {beside}
      </div>
      <div className="code-box">
        <pre ref={gutter} className="code-gutter" aria-hidden="true">
          {Array.from({ length: lines }, (_, at) => at + 1).join('\n')}
        </pre>
        <textarea
          id={id}
          wrap="off"
          spellCheck={false}
          autoCapitalize="none"
          autoComplete="off"
          readOnly={disabled}
          value={value}
          {...(description !== undefined && { 'aria-describedby': `${id}-hint` })}
          onChange={(event) => onChange(event.currentTarget.value)}
          onScroll={(event) => {
            if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop
          }}
        />
      </div>
      {description !== undefined && (
        <Text id={`${id}-hint`} size="xs" c="dimmed" mt={4}>
          {description}
        </Text>
      )}
    </div>
  )
}
