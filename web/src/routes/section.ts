import { searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readRoutesSearch } from './routes-search.ts'

const listRoute = searchRoute('/routes', () => import('./routes-page.tsx'), readRoutesSearch)

export const section = defineSection({
  label: 'Routes',
  icon: 'route',
  to: '/routes',
  letter: 'r',
  need: { area: 'routes' },
  commands: [
    {
      label: 'Add a route',
      words: 'new received incoming mail forward',
      href: '/routes?add=yes',
      need: { area: 'routes', access: 'write' },
    },
  ],
  find: (text) =>
    /^[^\s@]+@[^\s@]+$/.test(text)
      ? [{ label: `Route of mail to ${text}`, href: `/routes?address=${encodeURIComponent(text)}` }]
      : [],
  routes: [listRoute],
})
