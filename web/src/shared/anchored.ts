import { type RefObject, useLayoutEffect } from 'react'

const GAP_PX = 4

/**
 * Shows an element with `popover` above everything, so that no window cuts it off: below its anchor, or above it where there is
 * more room, at most `heightMaxPx` high, and within the window.
 */
export function useAnchored(
  anchor: RefObject<HTMLElement | null>,
  popup: RefObject<HTMLElement | null>,
  heightMaxPx: number,
): void {
  useLayoutEffect(() => {
    const place = () => {
      const box = anchor.current?.getBoundingClientRect()
      if (!box || !popup.current) return
      const { style } = popup.current
      const below = window.innerHeight - box.bottom - 2 * GAP_PX
      const isBelow = below >= Math.min(heightMaxPx, box.top)
      style.minWidth = `${box.width}px`
      style.maxHeight = `${Math.min(heightMaxPx, isBelow ? below : box.top - 2 * GAP_PX)}px`
      style.top = isBelow ? `${box.bottom + GAP_PX}px` : 'auto'
      style.bottom = isBelow ? 'auto' : `${window.innerHeight - box.top + GAP_PX}px`
      style.left = '0'
      const rightmost = window.innerWidth - popup.current.offsetWidth - GAP_PX
      style.left = `${Math.max(GAP_PX, Math.min(box.left, rightmost))}px`
    }
    popup.current?.showPopover()
    place()
    window.addEventListener('resize', place)
    window.addEventListener('scroll', place, true)
    return () => {
      window.removeEventListener('resize', place)
      window.removeEventListener('scroll', place, true)
    }
  }, [anchor, popup, heightMaxPx])
}
