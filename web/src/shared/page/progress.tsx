import { Progress } from '@mantine/core'
import { countOf } from '../../base/format.ts'

/** Long work: how much of it is done, in words and as a bar. `what`: one of its things, such as "member"; `many`: default with an s. */
export function ProgressLine(props: {
  label: string
  done: number
  of: number
  what: string
  many?: string
}) {
  const { label, done, of, what, many } = props
  const share = of === 0 ? 100 : Math.min(100, (done / of) * 100)
  return (
    <div className="progress-line">
      <div className="progress-words">
        <span>{label}</span>
        <span className="dimmed" role="status">
          {done.toLocaleString('en')} of {countOf(of, what, many)}
        </span>
      </div>
      <Progress value={share} aria-label={label} />
    </div>
  )
}
