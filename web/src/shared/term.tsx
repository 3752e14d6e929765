import { useId, useRef, useState } from 'react'
import { useAnchored } from './anchored.ts'
import './term.css'

const HEIGHT_PX = 200

/**
 * A word with its explanation, which shows while the pointer is over one of them, and when the word has the focus or is touched.
 * Escape closes it (WCAG 2.2, 1.4.13). Screen readers read it after the word.
 */
export function Term({ word, means }: { word: string; means: string }) {
  const [isOpen, setOpen] = useState(false)
  const anchor = useRef<HTMLButtonElement>(null)
  const id = useId()
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside is what is operated
    <span className="term" onMouseEnter={() => setOpen(true)} onMouseLeave={() => setOpen(false)}>
      <button
        ref={anchor}
        type="button"
        className="term-word"
        aria-describedby={id}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onClick={() => setOpen(true)}
        onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
      >
        {word}
      </button>
      <span id={id} hidden>
        {means}
      </span>
      {isOpen && <Explanation anchor={anchor} means={means} />}
    </span>
  )
}

function Explanation(props: { anchor: React.RefObject<HTMLButtonElement | null>; means: string }) {
  const popup = useRef<HTMLSpanElement>(null)
  useAnchored(props.anchor, popup, HEIGHT_PX)
  return (
    <span ref={popup} className="term-means" popover="manual" role="tooltip">
      {props.means}
    </span>
  )
}
