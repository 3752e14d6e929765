import { Progress } from '@mantine/core'
import { countOf } from '../format.ts'

/** Long work: how much of it is done, in words and as a bar. `what`: one of its things, such as "member". */
export function ProgressLine(props: { label: string; done: number; of: number; what: string }) {
  const { label, done, of, what } = props
  const share = of === 0 ? 100 : Math.min(100, (done / of) * 100)
  return (
    <div className="progress-line">
      <div className="progress-words">
        <span>{label}</span>
        <span className="dimmed" role="status">
          {done.toLocaleString('en')} of {countOf(of, what)}
        </span>
      </div>
      <Progress value={share} aria-label={label} />
    </div>
  )
}
