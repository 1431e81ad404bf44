// The service itself: its health with a few metrics, and what was applied.

import { exchange, get } from './api.js'
import { h, put, svg } from './element.js'
import { count, number } from './text.js'
import { empty, facts, head, time, value } from './ui.js'

const FIRST = 500
const EVERY = 2000
const KEEP = 90
const HIGH = 40

const SAMPLE = /^(\w+)(?:\{[^\n]*\})? ([-+.\deE]+)$/gm

/** The samples of Prometheus text, summed up by name. */
function sums(text) {
  const found = new Map()
  for (const [, name, of] of text.matchAll(SAMPLE)) found.set(name, (found.get(name) ?? 0) + Number(of))
  return found
}

const grown = (now, before, name) => (now.get(name) ?? 0) - (before.get(name) ?? 0)
const each = (name) => (now, before, seconds) => grown(now, before, name) / seconds
const mean = (name) => (now, before) => {
  const calls = grown(now, before, `${name}_count`)
  return calls > 0 ? 1000 * grown(now, before, `${name}_sum`) / calls : 0
}
const gauge = (name, unit = 1) => (now) => (now.get(name) ?? 0) / unit

const PLOTS = [
  ['Requests', 'a second', each('entityapi_http_requests_total')],
  ['Time of a request', 'ms', mean('entityapi_http_request_duration_seconds')],
  ['Time in the database', 'ms', mean('entityapi_database_duration_seconds')],
  ['Requests that wait', '', gauge('entityapi_pool_waiting')],
  ['Processor', '%', (...samples) => 100 * each('process_cpu_seconds_total')(...samples)],
  ['Memory of the shim', 'MB', gauge('process_resident_memory_bytes', 1048576)]
]

const short = (of) => number(Number(of.toFixed(of < 10 ? 1 : 0)))

function plot([title, unit, measure]) {
  const line = svg('path', { d: '' })
  const now = h('strong', null, '–')
  const most = h('span', { class: 'hint' }, 'measuring…')
  const values = []
  return {
    node: h('section', { class: 'panel plot', 'aria-label': title },
      h('h2', null, title),
      h('p', { class: 'row' }, h('span', { class: 'grow' }, now, ` ${unit}`), most),
      svg('svg', { viewBox: `0 0 ${KEEP} ${HIGH}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, line)),
    add(...samples) {
      values.push(measure(...samples))
      if (values.length > KEEP) values.shift()
      const top = Math.max(...values)
      const y = (of) => (HIGH - 2 - (HIGH - 4) * of / Math.max(top, 1e-9)).toFixed(1)
      const points = values.map((one, i) => `${KEEP - values.length + i} ${y(one)}`)
      // one alone is a line already
      line.setAttribute('d', `M${KEEP - values.length - 1} ${y(values[0])}L${points.join('L')}`)
      now.textContent = short(values.at(-1))
      most.textContent = `at most ${short(top)} in ${Math.max(1, Math.ceil(values.length * EVERY / 60000))} min`
    }
  }
}

async function metrics(signal) {
  const answer = await exchange('GET', '/actuator/prometheus', { signal, anonymous: true })
  return answer.status === 200 ? { at: performance.now(), values: sums(answer.text) } : null
}

const chip = (status, as = status) => h('span', { class: `chip ${as}` }, status)

const state = (health) => facts([
  ['Service', chip(health.status)],
  ...Object.entries(health.components ?? {}).map(([name, one]) => [name === 'db' ? 'Database' : name, chip(one.status)])
])

const NO_METRICS = 'Metrics are not shown at this address; the setting "metrics" of the shim changes that.'
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

async function health(signal) {
  const ask = () => exchange('GET', '/actuator/health', { signal, anonymous: true })
  const read = async () => (await ask()).json ?? { status: 'DOWN' }
  const place = h('section', { class: 'panel', 'aria-label': 'State', role: 'status' }, state(await read()))
  let before = await metrics(signal)
  const plots = before ? PLOTS.map(plot) : []

  async function measure() {
    put(place, state(await read()))
    const now = before && await metrics(signal)
    if (!now) return
    plots.forEach((one) => one.add(now.values, before.values, (now.at - before.at) / 1000))
    before = now
  }

  async function follow() {
    for (await pause(FIRST); !signal.aborted; await pause(EVERY)) {
      if (document.hidden) continue
      await measure().catch(() => { if (!signal.aborted) put(place, state({ status: 'DOWN' })) })
    }
  }

  follow()
  return [
    head('Health', { over: 'Service' }),
    place,
    plots.length > 0 ? h('div', { class: 'plots' }, plots.map(({ node }) => node))
      : h('p', { class: 'muted' }, NO_METRICS)
  ]
}

const statements = (list) => list.length > 0 && h('details', null,
  h('summary', null, count(list.length, 'statement')),
  h('pre', { tabindex: 0 }, list.join(';\n')))

const waiting = (one) => h('li', { class: 'panel stack' },
  h('p', null, chip(one.status), ' ', one.what),
  h('p', { class: 'muted' }, one.why),
  one.reason && h('p', { class: 'fault' }, one.reason),
  one.hint && h('p', { class: 'hint' }, one.hint),
  statements(one.statements))

const difference = (one) => h('li', { class: 'panel' },
  h('strong', null, [one.entity, one.field].filter(Boolean).join('.')), ' ', one.message,
  h('p', { class: 'hint' }, one.hint))

const invalid = (one) => h('li', { class: 'panel' },
  h('strong', null, one.entity), ' ', one.index,
  h('p', { class: 'hint' }, one.hint))

const applied = (one) => h('li', { class: 'panel stack' },
  h('p', null, h('strong', null, `Revision ${one.revision}`), ' · ', time(one.appliedAt),
    h('span', { class: 'muted' }, ` · ${one.extensionVersion}`)),
  statements(one.statements))

const MIGRATIONS = 'What was applied, what waits, and where tables are not what is declared.'

const list = (title, items) => [h('h2', null, title), h('ul', { class: 'stack' }, items)]

async function migrations(signal) {
  const said = await get('/manage/migrations/status', {}, { signal })
  const { status, extensionVersion, manifestRevision, pending, differences, invalidIndexes, revisions, notices = [] } =
    said
  return [
    head('Migrations', { over: 'Service', under: MIGRATIONS }),
    h('section', { class: 'panel', 'aria-label': 'State' }, facts([
      ['State', chip(status, status === 'UP_TO_DATE' ? 'UP' : status)],
      ['Extension', extensionVersion],
      ['Revision of the manifests', value(manifestRevision, 'integer')]
    ])),
    pending.length > 0 ? list('Waiting', pending.map(waiting))
      : [h('h2', null, 'Waiting'), empty('Nothing waits: all that was declared is there.')],
    differences.length > 0 && list('Differences', differences.map(difference)),
    notices.length > 0 && list('Code of others on tables', notices.map(difference)),
    invalidIndexes.length > 0 && list('Indexes that are not valid', invalidIndexes.map(invalid)),
    revisions.length > 0 ? list('Applied', revisions.map(applied))
      : [h('h2', null, 'Applied'), empty('No manifest has been applied yet: "entityapi-shim apply" does that.')]
  ]
}

export const show = ({ parts: [, page], signal }) => page === 'migrations' ? migrations(signal) : health(signal)
