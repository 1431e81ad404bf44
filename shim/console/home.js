// Where one lands: what there is.

import { h } from './element.js'
import { model, permits } from './model.js'
import { link } from './route.js'
import { count } from './text.js'
import { empty, head, noTenant } from './ui.js'

const NO_ENTITIES = 'The service describes no entities: none are declared yet, or its description ' +
  '(entityapi.openapi) is switched off.'
const NO_ROLES = 'Your roles do not let you read any data. Ask an administrator of your tenant for a role.'

const card = ({ collection, title, description, attributes, relationships }) => h('li', null,
  h('a', { href: link(['data', collection]), class: 'card' },
    h('strong', null, title),
    h('span', null, description),
    h('span', { class: 'muted' },
      `${count(attributes.length, 'field')}, ${count(relationships.length, 'relationship')}`)))

export function show({ state, tenant }) {
  const entities = model.entities.filter((entity) => permits(entity, 'read'))
  const { profile, username, isSuperAdmin } = state.me
  const name = typeof profile?.displayName === 'string' ? profile.displayName : username
  return [
    head(`Welcome, ${name}`, { under: entities.length > 0 && 'Choose what you want to look at.' }),
    isSuperAdmin && !tenant && noTenant(),
    entities.length === 0 && empty(model.entities.length === 0 ? NO_ENTITIES : NO_ROLES),
    h('ul', { class: 'cards' }, entities.map(card))
  ]
}
