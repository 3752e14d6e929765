import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { Icon } from '../../look/icons.tsx'

/** The scrolling main part of a page. `wide`: for tables and curves. */
export function Page({ children, wide = false }: { children: ReactNode; wide?: boolean }) {
  return (
    <main className="page-scroll" id="main" tabIndex={-1}>
      <div className={wide ? 'page page-wide' : 'page'}>{children}</div>
    </main>
  )
}

export interface PageHeaderProps {
  title: string
  /** Beside the title: a state, a count. */
  beside?: ReactNode
  /** One sentence: what the page is for. */
  lead?: ReactNode
  /** Buttons, the main one last. */
  actions?: ReactNode
  /** The list that this page belongs to. */
  back?: { to: string; label: string }
}

/** The only h1 of a page, which also names the browser's tab. */
export function PageHeader({ title, beside, lead, actions, back }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Sendwright`
    return () => {
      document.title = 'Sendwright'
    }
  }, [title])
  return (
    <header className="page-header">
      {back && (
        <Link to={back.to as '/'} className="page-back">
          <Icon name="back" size={16} /> {back.label}
        </Link>
      )}
      <div className="page-title">
        <h1 className="breakable">{title}</h1>
        {beside}
        <span className="grow" />
        {actions && <div className="page-actions">{actions}</div>}
      </div>
      {lead && <p className="page-lead">{lead}</p>}
    </header>
  )
}

/** A titled box. `level` of its heading: 2 unless it stands within another. */
export function Panel(props: {
  title?: string
  beside?: ReactNode
  children: ReactNode
  /** Without inner distance, for tables. */
  flush?: boolean
  className?: string
}) {
  const { title, beside, children, flush, className } = props
  return (
    <section className={`panel ${className ?? ''}`} {...(title && { 'aria-label': title })}>
      {(title || beside) && (
        <header className="panel-header">
          {title && <h2>{title}</h2>}
          <span className="grow" />
          {beside}
        </header>
      )}
      <div className={flush ? undefined : 'panel-body'}>{children}</div>
    </section>
  )
}
