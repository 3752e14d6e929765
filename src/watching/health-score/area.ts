/** The health score: one figure for how mail fares, from events, classified failures and what providers say. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Figures } from '../metrics/figures.ts'
import { scoreRoutes } from './routes.ts'

export const healthScoreArea = (core: Core, figures: Figures): Area => ({
  operations: scoreRoutes({ ...core, figures }),
})
