/** Moving a block with the pointer: the one under it is marked, before or after its middle. */
import { type PointerEvent, useState } from 'react'
import type { Place } from './block-document.ts'

export const placeKey = (place: Place) => place.join('.')
const placeOf = (key: string) => key.split('.').map(Number) as unknown as Place

export interface Drag {
  /** Key of the block that is moved, and where it would go. */
  from: string
  over: string
  side: 'before' | 'after'
}

/** Props of a handle, and what is going on. `onDrop` gets the place before which the block is put. */
export function useDrag(onDrop: (from: Place, to: Place) => void) {
  const [drag, setDrag] = useState<Drag>()
  const handle = (place: Place) => ({
    onPointerDown(event: PointerEvent) {
      event.preventDefault()
      event.currentTarget.setPointerCapture(event.pointerId)
      setDrag({ from: placeKey(place), over: placeKey(place), side: 'before' })
    },
    onPointerMove(event: PointerEvent) {
      if (drag === undefined) return
      const target = blockAt(event.clientX, event.clientY, place.length)
      if (target) setDrag({ ...drag, ...target })
    },
    onPointerUp() {
      setDrag(undefined)
      if (drag === undefined || drag.over === drag.from) return
      const over = placeOf(drag.over)
      const last = (over.at(-1) ?? 0) + (drag.side === 'after' ? 1 : 0)
      onDrop(place, over.with(-1, last) as unknown as Place)
    },
    onPointerCancel: () => setDrag(undefined),
  })
  return { drag, handle }
}

/** The block of that depth under the pointer: rows go among rows, items among items. */
function blockAt(x: number, y: number, depth: number): Pick<Drag, 'over' | 'side'> | undefined {
  for (let element = document.elementFromPoint(x, y); element; element = element.parentElement) {
    const key = element.getAttribute('data-block')
    if (key === null || key.split('.').length !== depth) continue
    const { top, height } = element.getBoundingClientRect()
    return { over: key, side: y < top + height / 2 ? 'before' : 'after' }
  }
  return undefined
}
