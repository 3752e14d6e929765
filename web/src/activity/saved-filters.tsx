/** Searches that somebody has given a name. */
import { Button, TextInput } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { Icon } from '../look/icons.tsx'
import { type ActivitySearch, readActivitySearch } from './activity-search.ts'
import { useBrowserSetting } from './browser-setting.ts'
import { TEXT } from './text.ts'

interface Saved {
  name: string
  search: ActivitySearch
}

const SAVED_MAX = 30 // one screen
const NAME_MAX = 60

/** What was stored, as far as it is understood. */
export function readSaved(stored: unknown): Saved[] {
  if (!Array.isArray(stored)) return []
  return stored.slice(0, SAVED_MAX).flatMap((item: unknown) => {
    const { name, search } = (item ?? {}) as Partial<Record<'name' | 'search', unknown>>
    if (typeof name !== 'string' || name === '' || typeof search !== 'object' || search === null) return []
    const { at: _, ...kept } = readActivitySearch(search as Record<string, unknown>)
    return [{ name: name.slice(0, NAME_MAX), search: kept }]
  })
}

export function SavedFilters({ search }: { search: ActivitySearch }) {
  const [saved, setSaved] = useBrowserSetting('activity-filters', readSaved)
  const [name, setName] = useState('')
  const help = useId()
  const save = () => {
    const { at: _, ...kept } = search
    setSaved([...saved.filter((each) => each.name !== name.trim()), { name: name.trim(), search: kept }])
    setName('')
  }
  return (
    <details className="activity-menu">
      <summary>{TEXT.saved}</summary>
      <div>
        {saved.length === 0 ? (
          <p className="dimmed">{TEXT.noneSaved}</p>
        ) : (
          <ul>
            {saved.map((each) => (
              <li key={each.name}>
                <Link to="/activity" search={each.search} className="breakable">
                  {each.name}
                </Link>
                <Button
                  variant="subtle"
                  size="compact-sm"
                  aria-label={TEXT.forget(each.name)}
                  onClick={() => setSaved(saved.filter((other) => other !== each))}
                >
                  <Icon name="cross" size={14} />
                </Button>
              </li>
            ))}
          </ul>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault()
            save()
          }}
        >
          <TextInput
            size="sm"
            aria-label={TEXT.saveAs}
            placeholder={TEXT.saveAs}
            aria-describedby={help}
            maxLength={NAME_MAX}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" size="sm" disabled={name.trim() === '' || saved.length >= SAVED_MAX}>
            {TEXT.save}
          </Button>
        </form>
        <p className="dimmed" id={help}>
          {TEXT.keptHere}
        </p>
      </div>
    </details>
  )
}
