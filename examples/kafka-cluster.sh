#!/usr/bin/env bash
# A Kafka cluster on this machine, without encryption: controller 100 on port 19091, brokers on 9092, 9093, ...
#
#   export KAFKA_HOME=~/kafka_2.13-4.3.1    an unpacked Kafka 4, as Apache Kafka's download page offers it
#   examples/kafka-cluster.sh start         start brokers 0, 1 and 2, create two topics with data
#   examples/kafka-cluster.sh broker 3      start a further broker, in rack 3 modulo 3
#   examples/kafka-cluster.sh stop 3        stop this broker
#   examples/kafka-cluster.sh stop          stop everything; the data stays in .kafka
#
# Needs Java 17 or later and 2 GB of memory. Where 9092 is in use, for example by `plimsoll up`:
#
#   export KAFKA_PORT=29092                 brokers on 29092, 29093, ...
set -euo pipefail

directory=${KAFKA_DIRECTORY:-$PWD/.kafka}
home=${KAFKA_HOME:?the directory of an unpacked Kafka 4}
port=${KAFKA_PORT:-9092}
export KAFKA_HEAP_OPTS="-Xmx256m"

# start_node NODE FORMAT-OPTION: format the directory of a node the first time, and start it.
start_node() {
    local node=$1 properties=$directory/$1.properties
    if [ -e "$directory/$node.pid" ] && kill -0 "$(cat "$directory/$node.pid")" 2> /dev/null; then
        echo "node $node runs already" >&2
        return
    fi
    if [ ! -e "$directory/$node/meta.properties" ]; then
        [ -e "$directory/cluster-id" ] || "$home/bin/kafka-storage.sh" random-uuid > "$directory/cluster-id"
        "$home/bin/kafka-storage.sh" format -t "$(cat "$directory/cluster-id")" -c "$properties" "$2" \
            > "$directory/format.log"
    fi
    nohup "$home/bin/kafka-server-start.sh" "$properties" > "$directory/$node.log" 2>&1 &
    echo $! > "$directory/$node.pid"
}

# stop_node PID-FILE: end a node in order, and wait for it.
stop_node() {
    [ -e "$1" ] || { echo "no such node runs: $1" >&2; exit 1; }
    kill "$(cat "$1")" || true
    while kill -0 "$(cat "$1")" 2> /dev/null; do sleep 1; done
    rm "$1"
}

start_controller() {
    cat > "$directory/100.properties" <<END
process.roles=controller
node.id=100
controller.quorum.bootstrap.servers=localhost:19091
listeners=CONTROLLER://localhost:19091
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT
log.dirs=$directory/100
END
    start_node 100 --standalone
}

start_broker() {
    local own=$((port + $1))
    cat > "$directory/$1.properties" <<END
process.roles=broker
node.id=$1
broker.rack=rack-$(($1 % 3))
controller.quorum.bootstrap.servers=localhost:19091
listeners=PLAINTEXT://localhost:$own
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
auto.create.topics.enable=false
auto.leader.rebalance.enable=false
log.dirs=$directory/$1
END
    start_node "$1" --no-initial-controllers
}

# create_topic NAME PARTITIONS RECORDS: a topic with three replicas per partition and records of 1 kB.
create_topic() {
    "$home/bin/kafka-topics.sh" --bootstrap-server "localhost:$port" --create --if-not-exists \
        --topic "$1" --partitions "$2" --replication-factor 3
    "$home/bin/kafka-producer-perf-test.sh" --topic "$1" --num-records "$3" --record-size 1000 --throughput -1 \
        --producer-props "bootstrap.servers=localhost:$port"
}

# wait_for_broker BROKER: until the broker is one of the cluster. Its log says why it ended, if it did.
wait_for_broker() {
    until "$home/bin/kafka-broker-api-versions.sh" --bootstrap-server "localhost:$((port + $1))" 2> "$directory/wait.log" \
        | grep -q "(id: $1 "; do
        if ! kill -0 "$(cat "$directory/$1.pid")" 2> /dev/null; then
            if grep -q "Address already in use" "$directory/$1.log"; then
                echo "port $((port + $1)) is in use: stop what uses it, or set KAFKA_PORT" >&2
            else
                echo "broker $1 has ended; see $directory/$1.log" >&2
            fi
            exit 1
        fi
        sleep 1
    done
    echo "broker $1 runs on localhost:$((port + $1))"
}

case ${1:-} in
    start)
        mkdir -p "$directory"
        start_controller
        for broker in 0 1 2; do start_broker "$broker"; done
        for broker in 0 1 2; do wait_for_broker "$broker"; done
        create_topic orders 12 18000
        create_topic payments 6 8000
        ;;
    broker)
        start_broker "${2:?the id of the broker, e.g. 3}"
        wait_for_broker "$2"
        ;;
    stop)
        if [ $# -gt 1 ]; then
            stop_node "$directory/$2.pid"
            exit
        fi
        # The controller ends last: a broker cannot end in order without it.
        for file in $(ls "$directory"/*.pid | grep -v /100.pid) "$directory/100.pid"; do stop_node "$file"; done
        ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
