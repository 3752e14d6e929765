/** What a section of the dashboard is (docs/dashboard.md): one folder, one value of this type, one line in sections.ts. */
import type { AnyRoute } from '@tanstack/react-router'
import type { IconName } from './look/icons.tsx'
import type { Need } from './session.ts'

export interface SectionPage {
  label: string
  /** Path of the page. */
  to: string
  need?: Need
}

/** An entry of the command palette. */
export interface Command {
  label: string
  /** Further words that find it. */
  words?: string
  /** Path and query of the page that it opens. */
  href: string
  need?: Need
}

export interface Section {
  label: string
  icon: IconName
  /** Path of the first page; a section owns all paths below it. */
  to: string
  /** `g` and this letter open it; unique. */
  letter: string
  /** Without the right the section is not shown. */
  need?: Need
  /** Shown in this delivery mode only. */
  mode?: 'capture'
  /** Paths of its pages other than `to` and those below it. */
  alsoAt?: string
  /** Further entries under the section, if it has several lists. */
  pages?: readonly SectionPage[]
  commands?: readonly Command[]
  /** Entries for what was typed into the palette, such as a search for it. */
  find?: (text: string) => readonly Command[]
  /** Made by `pageRoute` or `searchRoute` (root-route.ts). */
  routes: readonly AnyRoute[]
}

/** Keeps the literal types of paths and routes, so that links are checked. */
export const section = <const S extends Section>(value: S): S => value

/** Whether the section owns the path. */
export const holds = ({ to, alsoAt }: Section, pathname: string): boolean =>
  pathname === to ||
  (to !== '/' && pathname.startsWith(`${to}/`)) ||
  (alsoAt !== undefined && pathname.startsWith(alsoAt))
