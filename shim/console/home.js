// Where one lands: what there is.

import { h } from './element.js'
import { model } from './model.js'
import { link } from './route.js'
import { count } from './text.js'
import { empty, head } from './ui.js'

export function show({ state }) {
  if (model.entities.length === 0) {
    return [head('Nothing to show'), empty('The service describes no entities: none are declared yet, or its description (entityapi.openapi) is switched off.')]
  }
  const entities = model.entities.filter(({ type }) => !model.refused.has(`read ${type}`))
  const { profile, username } = state.me
  return [
    head(`Welcome, ${profile?.displayName ?? username}`, { under: 'Choose what you want to look at.' }),
    h('ul', { class: 'cards' }, entities.map((entity) => h('li', null, h('a', { href: link(['data', entity.collection]), class: 'card' },
      h('strong', null, entity.title), h('span', null, entity.description),
      h('span', { class: 'muted' }, `${count(entity.attributes.length, 'field')}, ${count(entity.relationships.length, 'relationship')}`)))))
  ]
}
