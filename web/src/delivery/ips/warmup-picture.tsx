import type { WarmupDetails } from './ips-api.ts'
import { TEXT } from './text.ts'
import './ips.css'

/** The stages of a warm-up as steps: those that are done, how full the present one is, those to come. */
export function WarmupPicture({ warmup }: { warmup: WarmupDetails }) {
  const { total_stages: total, stage_number: now, stage_history, sent_within_stage: share } = warmup
  const steps = Array.from({ length: total }, (_, at) => at + 1)
  return (
    <div className="warmup-steps" role="img" aria-label={TEXT.picture(now, total)}>
      {steps.map((stage) => {
        const state = stage < now ? 'done' : stage === now ? 'now' : 'next'
        const limit = stage_history[stage - 1]?.limit.toLocaleString('en') ?? ''
        const words =
          state === 'done'
            ? TEXT.pictureDone(stage, limit)
            : state === 'now'
              ? TEXT.pictureNow(stage, share)
              : TEXT.pictureNext(stage)
        return (
          <span
            key={stage}
            className="warmup-step"
            data-state={state}
            title={words}
            style={{ height: `${30 + (70 * stage) / total}%` }}
          >
            {state === 'now' && <span style={{ height: share }} />}
          </span>
        )
      })}
    </div>
  )
}
