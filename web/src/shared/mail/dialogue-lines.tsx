import type { ReactNode } from 'react'
import type * as Api from '../../api-types.ts'

/** An SMTP dialogue, line by line. `children`: beside the title. */
export function DialogueLines(props: {
  title: string
  lines: Api.Transcript['lines']
  children?: ReactNode
}) {
  const { title, lines, children } = props
  return (
    <section className="dialogue" aria-label={title}>
      <header>
        <strong>{title}</strong>
        {children}
      </header>
      <ol>
        {lines.map(({ ms, direction, line }, index) => (
          <li
            // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat, and their order is theirs for good
            key={index}
            data-direction={direction}
            data-bad={(direction === 'received' && /^[45]/.test(line)) || undefined}
          >
            <span>{ms} ms</span>
            <span aria-label={direction === 'received' ? 'received' : 'sent'} role="img">
              {direction === 'received' ? '←' : '→'}
            </span>
            <span>{line}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}
